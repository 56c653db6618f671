/**
 * The mediated tool calls of one turn: served from its record, or run and recorded.
 *
 * Invariants:
 * - Calls that are asked at once, with no other effect between them, are one group: their intents are committed together, in the order
 *   asked, before any of them begins (I7). Results are recorded as they come, and a call that fails takes no other down.
 * - A result that is recorded is served at its place: after everything that was asked before it came. So a harness that acts on
 *   whichever result comes first does the same again.
 * - A call that needs a decision is committed with its request and unwinds as ApprovalParkedError. After that the harness is given
 *   nothing more; what runs already is waited for and recorded. Other calls that need a decision and were asked beside it, before the
 *   harness left, are committed and parked with it: over a wire they come one by one, and are one step all the same.
 */

import { InvariantError } from "../base/assert.ts";
import { invalidArgument } from "../base/errors.ts";
import type { Seq } from "../base/ids.ts";
import { normaliseToolCall, normaliseToolResult } from "../canon/index.ts";
import type { NewEvent, ReceiptState } from "../journal/index.ts";
import {
  ApprovalParkedError,
  INBOX_TOOL,
  Mediation,
  type ApprovalRef,
  type ApprovalSeqs,
  type ToolCall,
  type ToolCallOptions,
  type ToolResult,
} from "../spi/index.ts";
import { AppendPage, receiptOf } from "./append-page.ts";
import { approvalRequestEvent, ownResultEvent, toolCallEvent, toolResultEvent, type EventStamp } from "./events.ts";
import { atPlace, InOrder, type Place } from "./in-order.ts";
import type { Lane } from "./lane.ts";
import { decidedStep, policedStep, recordDecision } from "./policy-step.ts";
import type { RecordedApproval, RecordedToolCall } from "./recorded-turn.ts";
import { refuseOversize } from "./record-size.ts";
import { RunningCalls } from "./running-calls.ts";
import type { SinkContext } from "./sink.ts";
import { sharedResult } from "./shared-content.ts";
import { eitherSignal } from "./signals.ts";
import { givenResult, isActing, isServed, parkRef, resultSeqOf, tellDecision } from "./tool-group.ts";
import type { Ask, Begun, CameResult, UnansweredCall } from "./tool-group.ts";
import { refuseUnfit, refuseUnmediated, refuseUnparkable, unfitResult } from "./tool-refusals.ts";
import { executed, recordableResult, stateAfter, type RecordedResult } from "./tool-run.ts";
import { receiptFor, resultFor, toolStep, type ToolStep } from "./tool-step.ts";
import { WhileOpen } from "./while-open.ts";

/** Calls of one group; more make another one. */
const GROUP_CALLS_MAX = 128;
/** Records that a call may take: its intent, its request, its decision, its result. */
const CALL_RECORDS_MAX = 4;

/** Serves, or runs and records, the tool calls of one turn. */
export class ToolCalls {
  readonly #context: SinkContext;
  readonly #stamp: EventStamp;
  readonly #lane: Lane;
  /** Throws what an effect gets now, or nothing; one that is asked beside a park is let pass it. */
  readonly #enter: (options: ToolCallOptions, isBesidePark: boolean) => void;
  #group: Ask[] | undefined;
  /** Groups that have not begun. */
  #queued = 0;
  /** The ids of every mediated call that was asked. */
  readonly #ids = new Set<string>();
  /** By idempotency key: the call that acts under it and what comes of it. */
  readonly #byKey = new Map<string, { readonly call: ToolCall; readonly result: Promise<CameResult> }>();
  readonly #unanswered = new Map<string, UnansweredCall>();
  readonly #running: RunningCalls;
  readonly #parks: ApprovalRef[] = [];
  readonly #handing = new InOrder();
  /** Places of results that were recorded with their group's intents, by the ids of their calls. */
  readonly #places = new Map<string, Place>();
  readonly #open: WhileOpen;
  /** Settles when every group that was asked so far has begun. */
  #begun: Promise<void> = Promise.resolve();
  #isLeft = false;

  constructor(context: SinkContext, stamp: EventStamp, lane: Lane, enter: (options: ToolCallOptions, isBesidePark: boolean) => void) {
    this.#context = context;
    this.#stamp = stamp;
    this.#lane = lane;
    this.#enter = enter;
    this.#open = new WhileOpen(context.gate);
    this.#running = new RunningCalls(this.#open, context.interrupt);
    for (const { call, seq, approval } of context.tape.openCalls) this.#unanswered.set(call.id, { call, seq, approval });
  }

  /** The requests that the turn waits for, the oldest first. */
  get parks(): readonly ApprovalRef[] {
    return this.#parks;
  }

  /** Recorded calls without a result, in the order of their intents. */
  get unanswered(): readonly UnansweredCall[] {
    return [...this.#unanswered.values()].toSorted((left, right) => left.seq - right.seq);
  }

  /** A request was decided while the turn is on its way to park: whoever ends the turn need not decide it again. */
  decided(requestSeq: Seq, decision: NonNullable<RecordedApproval["decision"]>): void {
    for (const [id, unanswered] of this.#unanswered) {
      if (unanswered.approval?.requestSeq === requestSeq) this.#unanswered.set(id, { ...unanswered, approval: { requestSeq, decision } });
    }
  }

  /** Whether tools run, or are about to. A group that waits behind a model call is not, unless the turn is parked: nobody is asked then. */
  get isBusy(): boolean {
    return this.#running.any || (this.#queued > 0 && this.#parks.length > 0);
  }

  /** Whether a mediated call of the turn has this id. */
  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Resolves once no tool runs; a turn that is over waits for none. */
  async settled(): Promise<void> {
    await this.#running.settled();
  }

  /** Whether the harness has gone. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  /** The harness has gone: nothing new begins. Resolves once what it had begun has its result. */
  async leave(): Promise<void> {
    this.#isLeft = true;
    while (this.isBusy) await Promise.allSettled([this.#begun, this.#running.pass()]);
  }

  /** Another effect was asked: calls after it are another group. */
  closeGroup(): void {
    this.#group = undefined;
  }

  call(asked: ToolCall, options: ToolCallOptions): Promise<ToolResult> {
    const ask: Ask = { asked, options, settled: Promise.withResolvers<CameResult>(), isLate: this.#isLeft };
    const given = ask.settled.promise.then((came) => givenResult(came, this.#context));
    // A harness that lets all calls of a group go at the first one's fault has dropped the others.
    given.catch(() => undefined);
    if (this.#group !== undefined && this.#group.length < GROUP_CALLS_MAX) this.#group.push(ask);
    else this.#openGroup(ask);
    return given;
  }

  #openGroup(first: Ask): void {
    const group = [first];
    this.#group = group;
    this.#queued += 1;
    this.#begun = this.#lane.run(async () => {
      // What is asked in the same tick belongs to it.
      await Promise.resolve();
      if (this.#group === group) this.#group = undefined;
      this.#queued -= 1;
      await this.#running.begin(() => this.#begin(group));
    });
  }

  async #begin(group: readonly Ask[]): Promise<void> {
    const begun: Begun[] = [];
    for (const ask of group) {
      try {
        begun.push(await this.#decide(ask));
      } catch (error) {
        ask.settled.reject(error);
      }
    }
    // What is recorded is played to its end before anything is done that is not.
    const { played } = this.#context.tape;
    const later = begun.filter(({ recorded, step }) => !played && recorded !== undefined && !isServed(step, recorded));
    const now = begun.filter((each) => !later.includes(each));
    if (later.length > 0) void this.#running.track(atPlace(Number.POSITIVE_INFINITY as Seq, this.#context).then(() => this.#act(later)));
    await this.#act(now);
  }

  /** Makes intents durable and lets what follows happen. */
  async #act(begun: readonly Begun[]): Promise<void> {
    let acting: readonly Begun[];
    try {
      acting = await this.#commit(begun);
    } catch (error) {
      for (const { ask } of begun) ask.settled.reject(error);
      return;
    }
    // Results that are there are handed out in the order in which they were recorded, whatever the order of their calls.
    for (const each of acting.toSorted((left, right) => resultSeqOf(left) - resultSeqOf(right))) this.#proceed(each);
  }

  /** What is to happen with a call. Throws what the harness gets for it, before anything is recorded. */
  async #decide(ask: Ask): Promise<Begun> {
    const { tape, tools, isReplay, freshId } = this.#context;
    this.#enter(ask.options, this.#isBesidePark(ask));
    const call = normaliseToolCall(ask.asked);
    refuseUnmediated(call);
    const isExpected = tape.expectsTool(call);
    const unfit = isExpected ? undefined : this.#refuseNew(call, ask.options);
    const receipt = isExpected ? undefined : await receiptFor(call, { acting: this.#byKey.get(call.idempotencyKey)?.call, freshId }, tools);
    const recorded = tape.tool(call);
    this.#ids.add(call.id);
    const decision = recorded?.approval?.decision?.value;
    if (recorded?.result !== undefined) {
      return this.#keyed({ ask, call, recorded, step: { kind: "serve", result: recorded.result }, decision });
    }
    if (isReplay) return { ask, call, recorded, step: { kind: "wait" } };
    if (unfit !== undefined) return this.#keyed({ ask, call, recorded, step: { kind: "answer", result: unfitResult(call.id, unfit) } });
    const earlier = this.#byKey.get(call.idempotencyKey);
    if (earlier !== undefined) return { ask, call, recorded, step: { kind: "copy", of: earlier.result } };
    if (recorded !== undefined) {
      const known = await tools.receipt(call.idempotencyKey);
      const step = await toolStep({ call, isNew: false, approval: recorded.approval, receipt: known }, tools);
      return this.#keyed({ ask, call, recorded, step, decision });
    }
    const step = await toolStep({ call, isNew: true, approval: undefined, receipt }, tools);
    return this.#keyed({ ask, call, recorded, step: policedStep(step, call, this.#context.policies) });
  }

  /** Whether a call needs a decision as one does that parked the turn, and was asked before the harness left. */
  #isBesidePark({ asked, isLate }: Ask): boolean {
    return asked.mediation === Mediation.REQUIRES_APPROVAL && this.#parks.length > 0 && !isLate;
  }

  #keyed(begun: Begun): Begun {
    const { call, ask } = begun;
    this.#byKey.set(call.idempotencyKey, { call, result: ask.settled.promise });
    return begun;
  }

  /**
   * Throws for a call that may not be recorded; what is wrong with one that is recorded as refused. What is recorded already is not looked
   * at again: tools may have changed since.
   */
  #refuseNew(call: ToolCall, options: ToolCallOptions): string | undefined {
    if (this.#ids.has(call.id)) throw invalidArgument("id", "must be unique: another call of the turn has this id");
    refuseOversize("tool_call", toolCallEvent(this.#stamp, call, this.#context.principal));
    refuseUnparkable(call, this.#context);
    return refuseUnfit(call, options, this.#context);
  }

  /** Makes the intents of a group durable, and with them what is decided at once and the results that need no tool. */
  async #commit(begun: readonly Begun[]): Promise<readonly Begun[]> {
    const count = begun.filter(isActing).length;
    if (count === 0) return begun;
    const { journal, gate, admit, tape } = this.#context;
    gate.pass();
    tape.pass();
    admit(count * CALL_RECORDS_MAX, {
      toolCalls: begun.filter((each) => isActing(each) && each.recorded === undefined && each.call.tool !== INBOX_TOOL).length,
    });
    const page = new AppendPage(journal.issuedSeq);
    const acting = begun.map((each) => (isActing(each) ? this.#intend(each, page) : each));
    const answered = acting.filter(({ step }) => step.kind === "answer");
    for (const { call, step } of answered) {
      if (step.kind === "answer") this.#answer(call, step, page);
      this.#places.set(call.id, this.#handing.place());
    }
    if (page.isEmpty) return acting;
    try {
      await journal.commit(page.events, { receipts: page.receipts });
      gate.pass();
    } catch (error) {
      for (const { call } of answered) this.#places.get(call.id)?.pass();
      throw error;
    }
    return acting;
  }

  /** Writes an intent down, and what is asked or decided of it. The call as it goes on from there. */
  #intend(begun: Begun, page: AppendPage): Begun {
    const { call, recorded } = begun;
    const { principal } = this.#context;
    const seq = recorded?.seq ?? page.add(toolCallEvent(this.#stamp, call, principal));
    let { step, decision } = begun;
    let approval = recorded?.approval;
    if (step.kind === "decide") {
      const decided = recordDecision(step, call, { page, stamp: this.#stamp, principal });
      approval = decided;
      decision = decided.decision.value;
      step = decidedStep(call.id, decided);
    }
    if (step.kind === "park") {
      approval ??= { requestSeq: page.add(approvalRequestEvent(this.#stamp, call, principal, step.why)), decision: undefined };
      if (recorded === undefined) page.receipts.push(receiptOf(call, seq, "intended"));
    }
    if (step.kind === "run") page.receipts.push(receiptOf(call, seq, "started"));
    this.#unanswered.set(call.id, { call, seq, approval });
    return { ...begun, step, decision };
  }

  #answer(call: ToolCall, { result, state, actor }: Extract<ToolStep, { kind: "answer" }>, page: AppendPage): void {
    this.#close(call, state, page, toolResultEvent(this.#stamp, result, actor ?? this.#context.principal));
  }

  /** Writes a call's result down, with what the receipt says then; its seq. */
  #close(call: ToolCall, state: ReceiptState | undefined, page: AppendPage, event: NewEvent): Seq {
    const resultSeq = page.add(event);
    const unanswered = this.#unanswered.get(call.id);
    this.#unanswered.delete(call.id);
    if (state !== undefined && unanswered !== undefined) page.receipts.push({ ...receiptOf(call, unanswered.seq, state), resultSeq });
    return resultSeq;
  }

  /** The group's intents are durable: what happens now happens by itself. */
  #proceed(begun: Begun): void {
    const { ask, call, step } = begun;
    const { resolve, reject } = ask.settled;
    switch (step.kind) {
      case "serve":
        void this.#hand(begun, step.result).then(resolve, reject);
        return;
      case "answer":
        void this.#handAnswer(begun, step.result).catch(reject);
        return;
      case "park":
        this.#park(call, reject);
        return;
      case "run":
        tellDecision(begun);
        this.#running.track(this.#run(begun, step.approval)).catch(reject);
        return;
      case "copy":
        this.#running.track(this.#copy(begun, step.of)).catch(reject);
        return;
      case "decide":
        throw new InvariantError("a decided call goes on as its decision says");
      case "wait":
        this.#open.run(new Promise<never>(() => undefined)).catch(reject);
    }
  }

  /** Hands out a result that was recorded with the intents, after everything that is served and was recorded before. */
  async #handAnswer(begun: Begun, result: ToolResult): Promise<void> {
    const { call, ask } = begun;
    const place = this.#places.get(call.id);
    this.#places.delete(call.id);
    try {
      await place?.turn;
      ask.settled.resolve(await this.#hand(begun, { seq: this.#context.journal.issuedSeq, value: result }));
    } finally {
      place?.pass();
    }
  }

  /** Hands out a recorded result at its place. */
  async #hand(begun: Begun, { seq, value }: NonNullable<RecordedToolCall["result"]>): Promise<CameResult> {
    await atPlace(seq, this.#context);
    this.#context.tape.pass();
    this.#context.gate.pass();
    tellDecision(begun);
    return { value, seq: begun.step.kind === "answer" ? undefined : seq };
  }

  #park(call: ToolCall, reject: (error: unknown) => void): void {
    const ref = parkRef(this.#context, call, this.#unanswered.get(call.id)!.approval!.requestSeq);
    this.#parks.push(ref);
    this.#parks.sort((left, right) => Number(left.requestSeq - right.requestSeq));
    reject(new ApprovalParkedError(ref));
  }

  async #run(begun: Begun, approval: ApprovalSeqs | undefined): Promise<void> {
    const { gate, journal, tools, principal, resultBytesMax } = this.#context;
    const { call, ask } = begun;
    const signal = eitherSignal(gate.signal, ask.options.signal);
    const recorded = (made: ToolResult): RecordedResult => ({ result: made, event: ownResultEvent(this.#stamp, made, principal) });
    const run = { session: journal.session, signal, blobs: tools.blobs };
    await this.#running.act(executed(tools.executor, call, run), (outcome) => {
      const made = recordableResult(outcome, { call, approval, recorded, bytesMax: resultBytesMax });
      return this.#record(begun, made, stateAfter(made.result));
    });
  }

  async #copy(begun: Begun, of: Promise<CameResult>): Promise<void> {
    const { value } = await this.#open.run(of);
    const own = normaliseToolResult(resultFor(begun.call.id, value));
    await this.#record(begun, { result: own, event: ownResultEvent(this.#stamp, own, this.#context.principal) }, undefined);
  }

  /**
   * Records a result before the harness gets it, or at the same time where it can act through the host only. Results are handed out in the
   * order in which they are recorded, whatever their commits take.
   */
  async #record(begun: Begun, { result, event }: RecordedResult, state: ReceiptState | undefined): Promise<void> {
    const { call, ask } = begun;
    const { gate, journal, earlyServing } = this.#context;
    gate.pass();
    const page = new AppendPage(journal.issuedSeq);
    const resultSeq = this.#close(call, state, page, event);
    const place = this.#handing.place();
    try {
      if (earlyServing) await journal.issue(page.events, { receipts: page.receipts });
      else await journal.commit(page.events, { receipts: page.receipts });
      await place.turn;
      const shared = this.#context.shares() ? sharedResult(event) : undefined;
      ask.settled.resolve({ value: shared ?? result, seq: resultSeq });
    } finally {
      place.pass();
    }
  }
}
