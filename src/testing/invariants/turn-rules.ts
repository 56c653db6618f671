/**
 * What the records of a session look like, whatever happened: the grammar of turns, as the contract states it under "One turn",
 * "Effects" and "Recovery, suspend, fork, delete".
 *
 * It knows journals with start markers and execution ids, which is what Holdfast writes. It shares no code with the controller.
 */

import { EventKind, Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import type { Event } from "../../spi/index.ts";

interface OpenTurn {
  readonly executionId: string;
  inputsLeft: bigint;
  /** Has a MODEL_CALL that nothing has answered. */
  calling: boolean;
}

/** The event kind that each body belongs to; a message may be INPUT or OUTPUT. */
const KIND_OF: Readonly<Record<string, EventKind>> = {
  model: EventKind.EVENT_MODEL_CALL,
  tool: EventKind.EVENT_TOOL_CALL,
  result: EventKind.EVENT_TOOL_RESULT,
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
  /** The execution whose CANCEL was the last record; its END must follow. */
  #cancelled: string | undefined;

  /** What is wrong with the next event; empty when nothing is. */
  push(event: Event): readonly string[] {
    const faults: string[] = [];
    const require = (holds: boolean, what: string): void => {
      if (!holds) faults.push(what);
    };
    require(!this.#deleted, "a record follows LIFECYCLE DELETE");
    require(event.schemaVersion === 1 && event.ts !== undefined, "schema_version or ts is not the host's");
    const { case: body } = event.body;
    require(body === "message" || body === undefined || KIND_OF[body] === event.kind, "the kind is not that of the body");
    this.#cancelIsFollowed(event, require);
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
    this.#open = { executionId: event.executionId, inputsLeft: count ?? 0n, calling: false };
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
    require(!this.#cold || this.#cancelled !== undefined, "a turn goes on on a cold session without RESUME");
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
    else require(!open.calling, "an effect comes between a MODEL_CALL and its completion");
  }

  #modelCall(open: OpenTurn, id: string, require: Require): void {
    require(!open.calling, "a second MODEL_CALL before the first one's completion");
    require(id !== "" && !this.#callIds.has(id), "a MODEL_CALL's id is empty or was used before");
    this.#callIds.add(id);
    open.calling = true;
  }

  #end(open: OpenTurn, state: string, require: Require): void {
    require(["COMPLETED", "FAILED", "CANCELED"].includes(state), "END has another state than COMPLETED, FAILED, CANCELED");
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
    if (this.#open !== undefined) this.#open.inputsLeft = 0n;
  }
}

type Require = (holds: boolean, what: string) => void;

function isLifecycle(event: Event, kind: Lifecycle_Kind): boolean {
  return event.body.case === "lifecycle" && event.body.value.kind === kind;
}
