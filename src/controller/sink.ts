/**
 * The sink: how a harness's effects are served from its record, or happen and are recorded.
 *
 * One implementation of each effect serves the live turn (an empty tape), recovery (a tape that ends where the crash was) and
 * replay (a closed tape, and nothing to write with). They differ only in where results come from.
 *
 * Invariants:
 * - A recorded effect is served and not performed (I1, I3). After the last one the turn is live. After a divergence it is neither.
 * - An intent is durable before its effect starts (I7). A result is durable before the harness gets it, unless the harness can
 *   act through the host only; then it may be served while its commit is under way, because whatever follows commits after it.
 * - Effects are serialised in the order asked: OUTPUT carries no call id, so nothing may come between a MODEL_CALL and its OUTPUT.
 * - What the harness gets or gives shares nothing with what is recorded: changing it later changes no record. One that changes nothing gets
 *   what is recorded itself (`shared-content.ts`).
 */

import { clone, create } from "@bufbuild/protobuf";
import { codeOfGrpcStatus, HoldfastError, invalidArgument, toHoldfastError } from "../base/errors.ts";
import type { ExecutionId, Seq, SessionUid } from "../base/ids.ts";
import type { Ports } from "../base/ports.ts";
import { inputHash, normaliseMessage, normaliseToolResult, wellFormedMessage } from "../canon/index.ts";
import { MessageSchema, UsageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { DeltaSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { NewEvent, Receipt } from "../journal/index.ts";
import {
  ApprovalParkedError,
  type BaselineOptions,
  type CallOptions,
  type EventSink,
  type IdentityRef,
  type ModelCatalog,
  type ModelChunk,
  type ModelRequest,
  type ModelResponse,
  type ToolCall,
  type ToolCallOptions,
  type ToolExecutor,
  type ToolResult,
  type Usage,
} from "../spi/index.ts";
import type { Meter } from "./budgets.ts";
import type { DeltaHub } from "./deltas.ts";
import {
  baselineEvent,
  errorEvent,
  modelCallEvent,
  outputEvent,
  ownResultEvent,
  textOutputEvent,
  usageEvent,
  type EventStamp,
} from "./events.ts";
import { encodedCompaction, encodedFacts } from "./facts.ts";
import { type Gate, turnOverError } from "./gate.ts";
import type { HostTools } from "./host-tools.ts";
import { Lane } from "./lane.ts";
import type { AskedRequest, LastRequests } from "./last-requests.ts";
import type { PartialChunk, Partials } from "./partials.ts";
import type { PolicyRule } from "./policy.ts";
import { refuseOversize } from "./record-size.ts";
import type { RecordedCompletion } from "./recorded-turn.ts";
import type { MessageOrigins } from "./request-sketch.ts";
import { sharedMessage } from "./shared-content.ts";
import { eitherSignal } from "./signals.ts";
import { tokensOf, type Spending } from "./spent.ts";
import type { Tape } from "./tape.ts";
import { ToolCalls } from "./tool-calls.ts";

/** What a sink records with. */
export interface Pen {
  readonly session: SessionUid;
  /** The last seq that was handed out; the next record has the one after it. */
  readonly issuedSeq: Seq;
  /** Appends and resolves once the records are durable. */
  commit(events: readonly NewEvent[], options?: { readonly receipts?: readonly Receipt[] }): Promise<unknown>;
  /** Appends without waiting: what is recorded next commits with these records or after them. */
  issue(events: readonly NewEvent[], options?: { readonly receipts?: readonly Receipt[] }): Promise<unknown>;
}

/** What a sink needs of its turn. */
export interface SinkContext {
  /** What events carry; "" in a journal without execution ids. */
  readonly executionId: ExecutionId | "";
  /** What the turn has recorded already. */
  readonly tape: Tape;
  readonly journal: Pen;
  readonly gate: Gate;
  readonly models: ModelCatalog;
  /** Finds and runs tools; in a replay it only says what may be asked. Undefined on a host without tools. */
  readonly executor: Pick<ToolExecutor, "find" | "check"> | undefined;
  readonly tools: HostTools;
  /** A replay runs no tool; where the record ends, nothing comes. */
  readonly isReplay: boolean;
  /** The id of a turn that begins here: nothing was done before under a key that begins with it. Undefined for one that is taken up again. */
  readonly freshId: ExecutionId | undefined;
  /** What the host says of tool calls itself, the first rule that matches; it is asked about new calls only. */
  readonly policies: readonly PolicyRule[];
  /** Whether the harness may wait for an approval: it keeps nothing in memory. */
  readonly mayPark: boolean;
  /** The largest TOOL_RESULT that is recorded of a tool, in bytes. */
  readonly resultBytesMax: number;
  /** Absent in a replay, which records nothing. */
  readonly requests: LastRequests | undefined;
  readonly origins: MessageOrigins;
  readonly deltas: DeltaHub;
  readonly partials: Partials;
  readonly ports: Ports;
  /** The session's principal: the actor of every effect. */
  readonly principal: IdentityRef | undefined;
  /** Results may be served while their commit is under way: the harness acts through the host only. */
  readonly earlyServing: boolean;
  /** Whether the harness gets what is recorded itself, frozen: it changes nothing. */
  readonly shares: () => boolean;
  /** Throws when the turn has no room for `count` more records, or when a budget has none for `next`; undefined spends nothing. */
  readonly admit: (count: number, next?: Partial<Spending>) => void;
  /** Absent where nobody counts. */
  readonly meter: Meter | undefined;
  /** Ends the turn without END: it can be resumed. */
  readonly interrupt: (fault: HoldfastError) => void;
}

/** A completion, and the record that it becomes. */
interface Completion extends ModelResponse {
  readonly output: NewEvent;
}

/** Serves, or performs and records, the effects of one turn. */
export class TurnSink implements EventSink {
  readonly #context: SinkContext;
  readonly #stamp: EventStamp;
  readonly #lane = new Lane();
  readonly #tools: ToolCalls;
  #recordedFault: HoldfastError | undefined;
  #unanswered: boolean;
  /** The next usage is that of a completion, which was counted when it came. */
  #isCounted = false;

  constructor(context: SinkContext) {
    this.#context = context;
    this.#unanswered = context.tape.endsUnanswered;
    this.#stamp = { executionId: context.executionId, clock: context.ports.clock };
    this.#tools = new ToolCalls(context, this.#stamp, this.#lane, (options, isBesidePark) => this.#enter(options, isBesidePark));
  }

  /** The last fault that this sink recorded as ERROR, so that it is not recorded again when the harness lets it pass. */
  get recordedFault(): HoldfastError | undefined {
    return this.#recordedFault;
  }

  /**
   * Whether the last effect on record is a model call without a result. Whatever ERROR came right after it would be read as that
   * call's failure for good.
   */
  get unanswered(): boolean {
    return this.#unanswered;
  }

  model(request: ModelRequest, options: CallOptions = {}): Promise<ModelResponse> {
    return this.#run(() => this.#model(request, options));
  }

  output(text: string, options: CallOptions = {}): Promise<void> {
    return this.#run(async () => {
      this.#enter(options);
      if (!text.isWellFormed()) throw invalidArgument("output", "must have no lone surrogates");
      const event = textOutputEvent(this.#stamp, text, this.#context.principal);
      refuseOversize("output", event);
      if (this.#context.tape.output(text)) return;
      await this.#issue(event);
    });
  }

  toolCall(call: ToolCall, options: ToolCallOptions = {}): Promise<ToolResult> {
    return this.#tools.call(call, options);
  }

  report(result: ToolResult, options: CallOptions = {}): Promise<void> {
    return this.#run(async () => {
      this.#enter(options);
      if (result.id === "") throw invalidArgument("result.id", "must be the id of the call that it answers");
      if (result.approvalRequestSeq !== 0n || result.approvalDecisionSeq !== 0n) {
        throw invalidArgument("result", "must leave approval_request_seq and approval_decision_seq to the host");
      }
      if (this.#tools.has(result.id)) throw invalidArgument("result.id", "must not be that of a call which the host runs");
      const normal = normaliseToolResult(result);
      const event = ownResultEvent(this.#stamp, normal, this.#context.principal);
      refuseOversize("result", event);
      if (this.#context.tape.report(normal)) return;
      await this.#issue(event);
    });
  }

  usage(usage: Usage, options: CallOptions = {}): Promise<void> {
    return this.#run(async () => {
      this.#enter(options);
      const event = usageEvent(this.#stamp, usage, this.#context.principal);
      const { body } = event.event;
      const isCounted = this.#isCounted;
      this.#isCounted = false;
      if (body.case === "usage" && this.#context.tape.usage(body.value)) return;
      await this.#issue(event);
      if (!isCounted) this.#context.meter?.spend({ tokens: tokensOf(usage) });
    });
  }

  baseline(account: string, options: BaselineOptions = {}): Promise<void> {
    return this.#run(async () => {
      this.#enter(options);
      if (!account.isWellFormed()) throw invalidArgument("baseline", "must have no lone surrogates");
      const event = baselineEvent(this.#stamp, account, this.#context.principal);
      refuseOversize("baseline", event);
      if (this.#context.tape.baseline(account)) return;
      await this.#issue(options.compaction === undefined ? event : { ...event, aside: encodedCompaction(options.compaction) });
    });
  }

  /** The mediated tool calls of the turn. */
  get tools(): ToolCalls {
    return this.#tools;
  }

  #run<T>(effect: () => Promise<T>): Promise<T> {
    this.#tools.closeGroup();
    return this.#lane.run(effect);
  }

  /** Every effect passes here first: the turn runs and is not parked, its tape has not diverged, the harness has not given up. */
  #enter(options: CallOptions, isBesidePark = false): void {
    this.#context.gate.pass();
    this.#context.tape.pass();
    const [park] = this.#tools.parks;
    if (park !== undefined && !isBesidePark) throw new ApprovalParkedError(park);
    if (this.#tools.isLeft && !isBesidePark) throw turnOverError();
    options.signal?.throwIfAborted();
  }

  #issue(event: NewEvent): Promise<unknown> {
    this.#context.admit(1);
    return this.#context.journal.issue([event]);
  }

  async #model(request: ModelRequest, options: CallOptions): Promise<ModelResponse> {
    const { ports, tape, journal, requests } = this.#context;
    // Nothing may come between a MODEL_CALL and its OUTPUT.
    if (this.#tools.isBusy) await this.#tools.settled();
    this.#enter(options);
    if (request.model === "") throw invalidArgument("model", "must name a model");
    const asked = requests?.asked(journal.session, request);
    const hash = asked?.inputHash ?? inputHash(request, ports.digest);
    const recorded = tape.model({ kind: "model", request, inputHash: hash });
    if (recorded?.result !== undefined) {
      asked?.sketch(recorded.seq);
      return this.#serve(recorded.result);
    }
    if (recorded === undefined) await this.#intend(request, hash, asked);
    else this.#context.admit(1, {});
    return this.#perform(request, options);
  }

  /** The recorded completion with its usage, or the recorded failure. */
  #serve(result: RecordedCompletion): ModelResponse {
    if (result.kind === "failed") {
      const code = codeOfGrpcStatus(result.error.code) ?? "internal";
      this.#recordedFault = new HoldfastError(code, result.error.description);
      throw this.#recordedFault;
    }
    this.#isCounted = true;
    const usage = this.#context.tape.usageAhead() ?? create(UsageSchema);
    const message = clone(MessageSchema, result.message);
    this.#context.origins.note(message, this.#context.journal.session, result.seq);
    return { message, usage: clone(UsageSchema, usage) };
  }

  async #intend(request: ModelRequest, hash: string, asked: AskedRequest | undefined): Promise<void> {
    const { journal, gate, principal, admit } = this.#context;
    admit(2, {});
    const call = { request, inputHash: hash, id: this.#newCallId() };
    const aside = asked?.sketch(nextSeqOf(journal));
    this.#unanswered = true;
    await journal.commit([{ ...modelCallEvent(this.#stamp, call, principal), aside }]);
    gate.pass();
  }

  async #perform(request: ModelRequest, options: CallOptions): Promise<ModelResponse> {
    this.#isCounted = false;
    const { message, usage, output } = await this.#complete(request, options);
    const { journal, origins } = this.#context;
    origins.note(message, journal.session, nextSeqOf(journal));
    await this.#record(output);
    return { message, usage };
  }

  #record(event: NewEvent): Promise<unknown> {
    const { gate, journal, earlyServing } = this.#context;
    gate.pass();
    this.#unanswered = false;
    return earlyServing ? journal.issue([event]) : journal.commit([event]);
  }

  /** Runs the provider. A call that failed for good is recorded as ERROR before the harness learns of it. */
  async #complete(request: ModelRequest, options: CallOptions): Promise<Completion> {
    const { gate } = this.#context;
    const signal = eitherSignal(gate.signal, options.signal);
    try {
      return await this.#stream(request, signal);
    } catch (error) {
      gate.pass();
      const fault =
        options.signal?.aborted === true
          ? new HoldfastError("cancelled", "model: the harness cancelled the call", { cause: error })
          : toHoldfastError(error);
      this.#unanswered = false;
      await this.#context.journal.commit([errorEvent(this.#stamp, fault.facts.grpc, fault.message, this.#context.principal)]);
      this.#recordedFault = fault;
      throw fault;
    }
  }

  async #stream(request: ModelRequest, signal: AbortSignal): Promise<Completion> {
    const provider = this.#context.models.providerOf(request.model);
    if (provider === undefined) {
      throw new HoldfastError(
        "failed_precondition",
        "model: no provider of this host serves it; name one that is served, or give the host a provider and its key: `holdfast serve --help` has their names",
      );
    }
    const { partials, journal } = this.#context;
    try {
      for await (const chunk of provider.complete(request, { signal })) {
        signal.throwIfAborted();
        if (chunk.kind === "completed") {
          this.#publish(0, "", true);
          return this.#completion(chunk);
        }
        this.#show(chunk);
      }
    } finally {
      partials.end(journal.session);
    }
    throw new HoldfastError("unavailable", "model: the provider's stream ended before its completion was whole");
  }

  /** What can be recorded of a completion. Throws where no record can hold it. */
  #completion(chunk: Extract<ModelChunk, { kind: "completed" }>): Completion {
    const { principal, shares } = this.#context;
    const message = wellFormedMessage(chunk.response.message);
    const output = { ...outputEvent(this.#stamp, message, principal), aside: encodedFacts(chunk.facts, chunk.response.usage) };
    this.#isCounted = true;
    this.#context.meter?.spendCompletion(tokensOf(chunk.response.usage), chunk.facts.costNanoDollars);
    refuseOversize("model", output);
    const given = shares() ? sharedMessage(output) : undefined;
    return { message: given ?? normaliseMessage(message), usage: chunk.response.usage, output };
  }

  #show(chunk: PartialChunk): void {
    const { partials, journal, executionId } = this.#context;
    partials.add(journal.session, { executionId, afterSeq: journal.issuedSeq }, chunk);
    if (chunk.kind === "text") this.#publish(chunk.partIndex, chunk.text, false);
  }

  #publish(partIndex: number, chunk: string, done: boolean): void {
    const { deltas, journal, executionId } = this.#context;
    if (!deltas.watched(journal.session)) return;
    deltas.publish(journal.session, create(DeltaSchema, { executionId, partIndex, chunk: chunk.toWellFormed(), done }));
  }

  #newCallId(): string {
    let id = "";
    for (const byte of this.#context.ports.random.bytes(8)) id += byte.toString(16).padStart(2, "0");
    return id;
  }
}

function nextSeqOf(journal: Pen): Seq {
  return (journal.issuedSeq + 1) as Seq;
}
