/**
 * What the records of a session look like, whatever happened: the grammar of turns, as the contract states it under "One turn",
 * "Effects" and "Recovery, suspend, fork, delete".
 *
 * It knows journals with start markers and execution ids, which is what Holdfast writes. It shares no code with the controller.
 */

import { EventKind, Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import { Mediation, type Event, type ToolResult } from "../../spi/index.ts";

interface OpenTurn {
  readonly executionId: string;
  inputsLeft: bigint;
  /** Has a MODEL_CALL that nothing has answered. */
  calling: boolean;
  /** The mediated calls, by id. */
  readonly tools: Map<string, ToolState>;
}

/** How far a mediated call has come. */
interface ToolState {
  readonly gated: boolean;
  /** It was the parent's: nobody here has to answer it. */
  inherited: boolean;
  request: bigint | undefined;
  decision: bigint | undefined;
  answered: boolean;
}

/** The event kind that each body belongs to; a message may be INPUT or OUTPUT. */
const KIND_OF: Readonly<Record<string, EventKind>> = {
  model: EventKind.EVENT_MODEL_CALL,
  tool: EventKind.EVENT_TOOL_CALL,
  result: EventKind.EVENT_TOOL_RESULT,
  approval: EventKind.EVENT_APPROVAL_REQUEST,
  approvalResult: EventKind.EVENT_APPROVAL_RESULT,
  usage: EventKind.EVENT_USAGE,
  error: EventKind.EVENT_ERROR,
  end: EventKind.EVENT_END,
  lifecycle: EventKind.EVENT_LIFECYCLE,
  executionStart: EventKind.EVENT_EXECUTION_START,
};

/** Reads a journal event by event. */
export class TurnRules {
  #open: OpenTurn | undefined;
  readonly #started = new Set<string>();
  readonly #callIds = new Set<string>();
  #cold = false;
  #deleted = false;
  /** A turn that lies still was given results: it is being cancelled. */
  #closing = false;
  #seq = 0n;
  /** The execution whose CANCEL was the last record; its END must follow. */
  #cancelled: string | undefined;

  /** What is wrong with the next event; empty when nothing is. */
  push(event: Event): readonly string[] {
    const faults: string[] = [];
    const require = (holds: boolean, what: string): void => {
      if (!holds) faults.push(what);
    };
    this.#seq += 1n;
    require(!this.#deleted, "a record follows LIFECYCLE DELETE");
    require(event.schemaVersion === 1 && event.ts !== undefined, "schema_version or ts is not the host's");
    const { case: body } = event.body;
    require(body === "message" || body === undefined || KIND_OF[body] === event.kind, "the kind is not that of the body");
    this.#cancelIsFollowed(event, require);
    const closes = body === "result" || body === "approvalResult" || isLifecycle(event, Lifecycle_Kind.LIFECYCLE_CANCEL);
    require(!this.#closing || closes || body === "end" || isLifecycle(event, Lifecycle_Kind.LIFECYCLE_FORK), "a cold turn goes on");
    if (body === "lifecycle") this.#lifecycle(event, require);
    else if (body === "executionStart") this.#start(event, require);
    else this.#inTurn(event, require);
    return faults;
  }

  #cancelIsFollowed(event: Event, require: Require): void {
    if (this.#cancelled === undefined) return;
    const { body } = event;
    const ends = body.case === "end" && event.executionId === this.#cancelled && body.value.state === "CANCELED";
    require(ends || isLifecycle(event, Lifecycle_Kind.LIFECYCLE_FORK), "CANCEL is not followed by END CANCELED");
  }

  #start(event: Event, require: Require): void {
    const count = event.body.case === "executionStart" ? event.body.value.inputCount : undefined;
    require(event.executionId !== "", "EXECUTION_START has no execution id");
    require(!this.#started.has(event.executionId), "two start markers have one execution id");
    require(!this.#cold, "a turn starts on a cold session without RESUME");
    require(this.#open === undefined || this.#open.inputsLeft <= 0n, "a turn starts before the inputs of the one before it");
    require(count !== undefined && count >= 0n, "EXECUTION_START does not say how many inputs there are");
    this.#started.add(event.executionId);
    this.#open = { executionId: event.executionId, inputsLeft: count ?? 0n, calling: false, tools: new Map() };
    this.#cancelled = undefined;
  }

  /** INPUT, effects, ERROR and END: each belongs to the open turn. */
  #inTurn(event: Event, require: Require): void {
    const open = this.#open;
    if (open === undefined || open.executionId !== event.executionId) {
      const ended = this.#started.has(event.executionId);
      return require(false, ended ? "a record follows the END of its execution, or a later turn's start" : "a record belongs to no turn");
    }
    // A turn that was interrupted may be cancelled where it lies.
    require(!this.#cold || this.#cancelled !== undefined || this.#mayComeCold(event), "a turn goes on on a cold session without RESUME");
    if (event.kind === EventKind.EVENT_INPUT) {
      require(open.inputsLeft > 0n, "more inputs than EXECUTION_START says");
      open.inputsLeft -= 1n;
      return;
    }
    const { body } = event;
    require(open.inputsLeft <= 0n, "fewer inputs than EXECUTION_START says");
    if (body.case === "model") this.#modelCall(open, body.value.id, require);
    else if (body.case === "message" || body.case === "error") open.calling = false;
    else if (body.case === "end") this.#end(open, body.value.state, require);
    else {
      require(!open.calling || body.case === "approvalResult", "an effect comes between a MODEL_CALL and its completion");
      this.#tool(open, event, require);
    }
  }

  /** A decision may come at any time. Results come to a turn that lies still when it is cancelled, and then nothing else does. */
  #mayComeCold({ body }: Event): boolean {
    if (body.case === "result") this.#closing = true;
    return body.case === "result" || body.case === "approvalResult";
  }

  #tool(open: OpenTurn, { body }: Event, require: Require): void {
    if (body.case === "tool") {
      require(!open.tools.has(body.value.id), "two calls of a turn have one id");
      require(body.value.id !== "" && body.value.idempotencyKey !== "", "a mediated call has no id or no idempotency key");
      const gated = body.value.mediation === Mediation.REQUIRES_APPROVAL;
      open.tools.set(body.value.id, { gated, inherited: false, request: undefined, decision: undefined, answered: false });
    } else if (body.case === "approval") {
      const tool = open.tools.get(body.value.toolCallId);
      require(tool?.gated === true && tool.request === undefined && !tool.answered, "an APPROVAL_REQUEST for no call that needs one");
      if (tool !== undefined) tool.request = this.#seq;
    } else if (body.case === "approvalResult") {
      const tool = open.tools.get(body.value.toolCallId);
      const isOpen = tool !== undefined && !tool.answered && tool.decision === undefined && !tool.inherited;
      require(isOpen && tool.request === body.value.requestSeq, "an APPROVAL_RESULT for no open request");
      if (tool !== undefined) tool.decision = this.#seq;
    } else if (body.case === "result") this.#toolResult(open, body.value, require);
  }

  #toolResult(open: OpenTurn, result: ToolResult, require: Require): void {
    const tool = open.tools.get(result.id);
    const seqs = [result.approvalRequestSeq, result.approvalDecisionSeq];
    if (tool === undefined) return require(seqs.every((seq) => seq === 0n), "a reported result names an approval");
    require(!tool.answered, "a call has two results");
    require(!tool.inherited, "a fork answers its parent's call");
    const due = tool.gated && tool.request !== undefined ? [tool.request, tool.decision ?? -1n] : [0n, 0n];
    require(seqs.join() === due.join(), "a receipt does not name its request and its decision");
    tool.answered = true;
  }

  #modelCall(open: OpenTurn, id: string, require: Require): void {
    require(!open.calling, "a second MODEL_CALL before the first one's completion");
    require(id !== "" && !this.#callIds.has(id), "a MODEL_CALL's id is empty or was used before");
    this.#callIds.add(id);
    open.calling = true;
  }

  #end(open: OpenTurn, state: string, require: Require): void {
    require(["COMPLETED", "FAILED", "CANCELED"].includes(state), "END has another state than COMPLETED, FAILED, CANCELED");
    const left = [...open.tools.values()].some(({ answered, inherited }) => !answered && !inherited);
    require(!left, "END comes before the result of a call");
    this.#closing = false;
    require(state !== "CANCELED" || this.#cancelled === open.executionId, "END CANCELED without CANCEL before it");
    this.#open = undefined;
    this.#cancelled = undefined;
  }

  #lifecycle(event: Event, require: Require): void {
    const kind = event.body.case === "lifecycle" ? event.body.value.kind : Lifecycle_Kind.LIFECYCLE_UNSPECIFIED;
    const open = this.#open;
    if (kind === Lifecycle_Kind.LIFECYCLE_FORK) return this.#fork();
    require(open === undefined || open.inputsLeft <= 0n, "fewer inputs than EXECUTION_START says");
    switch (kind) {
      case Lifecycle_Kind.LIFECYCLE_CANCEL:
        require(open !== undefined && open.executionId === event.executionId, "CANCEL of a turn that is not open");
        this.#cancelled = event.executionId;
        return;
      case Lifecycle_Kind.LIFECYCLE_SUSPEND:
        require(!this.#cold, "SUSPEND of a cold session");
        this.#cold = true;
        return;
      case Lifecycle_Kind.LIFECYCLE_RESUME:
        require(this.#cold, "RESUME of a session that is not cold");
        this.#cold = false;
        return;
      case Lifecycle_Kind.LIFECYCLE_DELETE:
        require(open === undefined, "DELETE while a turn is open");
        this.#deleted = true;
        return;
      default:
        require(false, `a lifecycle event of kind ${kind}, which nothing here writes`);
    }
  }

  /** A child's prefix ends where somebody asked, be it among the inputs of a turn or between CANCEL and END. */
  #fork(): void {
    this.#cold = false;
    this.#cancelled = undefined;
    this.#closing = false;
    if (this.#open === undefined) return;
    this.#open.inputsLeft = 0n;
    for (const tool of this.#open.tools.values()) tool.inherited = true;
  }
}

type Require = (holds: boolean, what: string) => void;

function isLifecycle(event: Event, kind: Lifecycle_Kind): boolean {
  return event.body.case === "lifecycle" && event.body.value.kind === kind;
}
