/**
 * One turn on this host, from its durable start to its last record.
 *
 * Invariants:
 * - A turn leaves the phase `running` once. Whoever moves it (the harness's end, a cancel, a lost lease, a shutdown) writes its
 *   last append; everybody else finds the gate shut.
 * - Only END ends a turn. A harness that throws leaves ERROR, and the turn is interrupted.
 * - The last append also releases the session's lease, so that nobody finds an ended turn running.
 */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { ExecutionId, Seq, SessionUid } from "../base/ids.ts";
import type { Timer } from "../base/ports.ts";
import type { EndState, NewEvent } from "../journal/index.ts";
import {
  HarnessFailure,
  isParkUnwindOfAny,
  readableThrow,
  type ApprovalRef,
  type ComputeRef,
  type HarnessEntry,
  type Start,
  type TokenMinter,
} from "../spi/index.ts";
import { closingOf } from "./closing.ts";
import type { CancelReason, RunningTurn, TurnOutcome } from "./contract.ts";
import { whenDue } from "./due-time.ts";
import { cancelEvent, endEvent, errorEvent, suspendEvent, type EventStamp } from "./events.ts";
import { Gate, turnOverError } from "./gate.ts";
import { harnessFault, parkIgnoredError, logThrow, TurnLimitError } from "./harness-fault.ts";
import { actsThroughHostOnly, mayPark } from "./harness-traits.ts";
import { HostTools } from "./host-tools.ts";
import { JournalHistory } from "./history.ts";
import { Inbox, withInbox } from "./inbox.ts";
import { sharedInputs } from "./shared-content.ts";
import type { Spending } from "./spent.ts";
import { TurnSink } from "./sink.ts";
import { minterOf } from "./minter.ts";
import { TurnJournal } from "./turn-journal.ts";
import type { TurnContext, TurnStart } from "./turn-start.ts";

/** A turn that runs on this host. */
export class Turn implements RunningTurn {
  readonly session: SessionUid;
  readonly executionId: ExecutionId;
  readonly startSeq: Seq;
  readonly outcome: Promise<TurnOutcome>;
  readonly #context: TurnContext;
  readonly #start: TurnStart;
  readonly #stamp: EventStamp;
  readonly #journal: TurnJournal;
  readonly #history: JournalHistory;
  readonly #gate = new Gate();
  readonly #tools: HostTools;
  readonly #inbox = new Inbox();
  /** Decisions that were recorded while the turn ran, by the seqs of their requests. */
  readonly #decisions = new Map<Seq, Promise<Seq>>();
  #phase: "running" | "ending" = "running";
  #timers: readonly Timer[] = [];
  /** Whether the harness gets what is recorded itself. */
  #shares = false;
  #limit: TurnLimitError | undefined;
  #compute: ComputeRef | undefined;
  #sink: TurnSink | undefined;
  #settle: (outcome: TurnOutcome) => void = () => undefined;

  constructor(context: TurnContext, start: TurnStart) {
    this.#context = context;
    this.#start = start;
    this.#compute = start.compute;
    this.session = start.position.session;
    this.executionId = start.executionId;
    this.startSeq = start.firstSeq ?? start.startSeq;
    this.#stamp = { executionId: start.recordedId ?? start.executionId, clock: context.ports.clock };
    const { store: journal, outputs, history: cache, origins } = context;
    const { startSeq, head, started } = start;
    this.#history = new JournalHistory(this.session, (startSeq - 1) as Seq, { journal, cache, origins, head, started });
    const inFlightMax = context.limits.appendsInFlightMax;
    this.#journal = new TurnJournal(journal, start.position, { inFlightMax, onCommitted: (made) => this.#history.follow(made) });
    const executor = withInbox(start.executor, this.#inbox);
    // An effect that cannot be looked up is neither refused nor performed: the turn stops here.
    const onFault = (fault: HoldfastError): void => this.#journal.close(fault);
    this.#tools = new HostTools({ executor, blobs: outputs?.of(this.session), journal, session: this.session, onFault });
    this.outcome = new Promise((resolve) => (this.#settle = resolve));
  }

  /** Messages that came while it runs. */
  get inbox(): Inbox {
    return this.#inbox;
  }

  /** The last seq that is durable. */
  get durableSeq(): Seq {
    return this.#journal.durableSeq;
  }

  /** The harness that it runs. */
  get harness(): HarnessEntry {
    return this.#start.harness;
  }

  /** Whether that is the session's own, and no other that one Exec named. */
  get isOwnHarness(): boolean {
    return this.#start.harness.name === this.#start.seed.harness;
  }

  /** What the row told of the session's compute when it began, and what it tells once the turn has ended. */
  get compute(): { readonly before: ComputeRef | undefined; readonly now: ComputeRef | undefined } {
    return { before: this.#start.compute, now: this.#compute };
  }

  /** Whether it has not begun to end. */
  get isRunning(): boolean {
    return this.#phase === "running";
  }

  /** The fence under which the turn writes. */
  get fence(): TurnJournal["fence"] {
    return this.#journal.fence;
  }

  /** Drives the harness. Never rejects; the outcome tells how it went. */
  async run(): Promise<void> {
    try {
      await this.#drive();
    } catch (error) {
      await this.#stopWriting(toHoldfastError(error));
    }
  }

  async #drive(): Promise<void> {
    this.#watchTimes();
    this.#context.requests.began(this.session, this.#start.head);
    const sink = this.#newSink();
    this.#sink = sink;
    try {
      if (this.#start.unready !== undefined) throw this.#start.unready;
      const { harness, compute } = await this.#start.harness.attach({
        sessionUid: this.session,
        executionId: this.executionId,
        fence: this.#journal.fence,
        identity: this.#start.seed.identity,
        compute: this.#start.compute,
        descriptor: this.#start.descriptor,
        signal: this.#gate.signal,
      });
      this.#gate.pass();
      this.#noteCompute(compute);
      this.#shares = harness.readsOnly === true;
      // Compute is told of a harness that is elsewhere.
      if (compute !== undefined) this.#journal.linger(this.#context.ports.clock);
      await harness.run(this.#harnessStart(), sink, { signal: this.#gate.signal });
    } catch (error) {
      return this.#harnessThrew(error, sink);
    }
    await this.#harnessEnded(sink);
  }

  /** Stops the harness and records CANCEL and END in one append. Resolves with the outcome, whoever ended the turn. */
  async cancel(reason: CancelReason): Promise<TurnOutcome> {
    const fault = new HoldfastError("cancelled", `turn: it was cancelled (${reason})`);
    await this.#leave(fault, () => this.#end("CANCELED", [cancelEvent(this.#stamp, reason, this.#start.seed.identity)]));
    return this.outcome;
  }

  /**
   * Records a decision on a call that the turn has asked for, while the turn is on its way to park. Resolves with its seq; undefined when
   * the turn writes no more, or another decision on the same request came first: that one is durable then.
   */
  async decide(requestSeq: Seq, decision: NewEvent): Promise<Seq | undefined> {
    const earlier = this.#decisions.get(requestSeq);
    if (earlier !== undefined) return void (await earlier);
    if (this.#phase !== "running" || this.#journal.fault !== undefined) return undefined;
    const durable = this.#journal.commit([decision]);
    this.#decisions.set(requestSeq, durable);
    if (decision.event.body.case === "approvalResult") {
      this.#sink?.tools.decided(requestSeq, { seq: this.#journal.issuedSeq, value: decision.event.body.value });
    }
    return durable;
  }

  /** Stops the harness and leaves the turn without END, to be resumed. */
  async interrupt(fault: HoldfastError): Promise<TurnOutcome> {
    await this.#leave(fault, async () => {
      await this.#journal.commit([], { release: true });
      return { kind: "interrupted", error: fault, lastSeq: this.#journal.durableSeq };
    });
    return this.outcome;
  }

  /** The session's lease was lost: nothing more may be written here. */
  async lose(): Promise<void> {
    const fault = new HoldfastError("aborted", "session: another host has taken it over; read the session, then retry");
    this.#journal.close(fault);
    await this.#leave(fault, async () => ({ kind: "interrupted", error: fault, lastSeq: this.#journal.durableSeq }));
  }

  #noteCompute(compute: ComputeRef | undefined): void {
    // What the row tells is of the session's own harness: another one's sandbox ends with its turn.
    if (compute === undefined || !this.isOwnHarness) return;
    this.#compute = compute;
    this.#journal.noteCompute(compute);
  }

  #newSink(): TurnSink {
    const { limits } = this.#context;
    const { tape, meter, started } = this.#start;
    return new TurnSink({
      ...this.#context,
      executor: this.#tools.executor,
      tools: this.#tools,
      isReplay: false,
      freshId: started === undefined ? undefined : this.executionId,
      mayPark: mayPark(this.#start.descriptor),
      resultBytesMax: limits.toolResultBytesMax,
      executionId: this.#start.recordedId ?? this.executionId,
      tape,
      journal: this.#journal,
      gate: this.#gate,
      principal: this.#start.seed.identity,
      earlyServing: actsThroughHostOnly(this.#start.descriptor),
      shares: () => this.#shares,
      admit: (count, next) => this.#admit(count, next),
      meter,
      interrupt: (fault) => void this.interrupt(fault),
    });
  }

  get #minter(): TokenMinter | undefined {
    const { harness, seed } = this.#start;
    const holder = { sessionUid: this.session, executionId: this.executionId, harness: harness.name, principal: seed.identity };
    return minterOf(this.#context.tokens, holder, this.#gate);
  }

  #harnessStart(): Start {
    const { seed, invocation, startSeq, executionId, started } = this.#start;
    const { origins } = this.#context;
    const inputs = this.#shares && started !== undefined ? sharedInputs(started.events) : invocation.inputs;
    // A turn without a start marker begins with its first input.
    const inputSeq = this.#start.recordedId === "" ? startSeq : startSeq + 1;
    for (const [index, input] of inputs.entries()) origins.note(input, this.session, (inputSeq + index) as Seq);
    return {
      executionId,
      sessionUid: this.session,
      config: invocation.config,
      history: this.#history,
      inputs,
      identity: { principal: seed.identity, mintToken: this.#minter },
      resumeFromSeq: invocation.resumeFromSeq,
      model: seed.model,
      tools: this.#start.tools,
    };
  }

  #admit(count: number, next: Partial<Spending> | undefined): void {
    const { turnRecordsMax } = this.#context.limits;
    const isFull = this.#journal.issuedSeq + count - this.startSeq + 1 >= turnRecordsMax;
    const reached = isFull ? `turn: it has reached its limit of ${turnRecordsMax} records` : next && this.#start.meter?.reached(next);
    if (reached !== undefined) throw this.#outgrew(reached);
    if (next !== undefined) this.#start.meter?.spend(next);
  }

  #outgrew(why: string): TurnLimitError {
    return (this.#limit ??= new TurnLimitError("resource_exhausted", why));
  }

  async #harnessEnded(sink: TurnSink): Promise<void> {
    if (sink.tools.isBusy) await sink.tools.leave();
    if (sink.tools.parks.length > 0) return this.#harnessThrew(parkIgnoredError(), sink);
    if (this.#limit !== undefined) return this.#harnessThrew(this.#limit, sink);
    const unfinished = this.#start.tape.unfinished();
    if (unfinished !== undefined) return this.#harnessThrew(unfinished, sink);
    await this.#leave(turnOverError(), () => this.#settled(() => this.#end("COMPLETED", [])));
  }

  async #harnessThrew(thrown: unknown, sink: TurnSink): Promise<void> {
    const error = readableThrow(thrown);
    // What runs already is not lost with its harness.
    if (sink.tools.isBusy) await sink.tools.leave();
    if (this.#phase !== "running") return;
    if (this.#journal.fault !== undefined) return this.#stopWriting(this.#journal.fault);
    const { parks } = sink.tools;
    // A turn that waits for a decision has not failed for good, whatever its harness says.
    const failure = this.#limit ?? (error instanceof HarnessFailure && parks.length === 0 ? error : undefined);
    // After a divergence nothing is recorded: what is there is true, and whatever the harness made of it is not.
    const divergence = this.#start.tape.divergence ?? (failure === undefined ? undefined : this.#start.tape.unfinished());
    if (divergence !== undefined) return void (await this.interrupt(divergence));
    if (failure !== undefined) return this.#fail(failure);
    if (parks[0] !== undefined && isParkUnwindOfAny(error, parks)) return this.#park(parks[0]);
    const fault = harnessFault(error);
    const { session, executionId: execution } = this;
    logThrow(this.#context.log, error, { session, execution, harness: this.#start.harness.name, code: fault.code });
    const silent = (sink.recordedFault !== undefined && error === sink.recordedFault) || sink.unanswered;
    await this.#leave(turnOverError(), async () => {
      const events = silent ? [] : [errorEvent(this.#stamp, fault.facts.grpc, fault.message, this.#start.seed.identity)];
      await this.#journal.commit(events, { release: true });
      return { kind: "interrupted", error: fault, lastSeq: this.#journal.durableSeq };
    });
  }

  /** The turn waits for a decision: SUSPEND, and nothing is held for it any longer. */
  async #park(ref: ApprovalRef): Promise<void> {
    await this.#leave(turnOverError(), async () => {
      const { harness, seed } = this.#start;
      const { snapshot, compute } = await harness.suspend({
        sessionUid: this.session,
        kind: "external",
        fence: this.fence,
        compute: this.#compute,
      });
      const suspend = suspendEvent(this.#context.ports.clock, snapshot, seed.identity);
      const lastSeq = await this.#journal.commit([suspend], { release: true, compute: { ref: compute } });
      return { kind: "parked", ref, lastSeq };
    });
  }

  async #fail(failure: HarnessFailure | TurnLimitError): Promise<void> {
    const grpcCode = failure instanceof HarnessFailure ? failure.grpcCode : failure.facts.grpc;
    const error = { grpcCode, description: failure.message };
    const end = () => this.#end("FAILED", [], error);
    // A harness that fails for good has unwound by itself; what outgrew a limit was stopped somewhere.
    await this.#leave(turnOverError(), () => (failure instanceof HarnessFailure ? this.#settled(end, true) : end()));
  }

  /**
   * Captures what the harness keeps in memory, so that END and the memory it ended with become durable in one append. A failure is for
   * good also where its sandbox is gone with it: the next turn starts from the capture before this one.
   */
  async #settled(end: () => Promise<TurnOutcome>, isFailure = false): Promise<TurnOutcome> {
    const { harness, seed } = this.#start;
    try {
      this.#noteCompute(await harness.settle({ sessionUid: this.session, fence: this.fence, compute: this.#compute }));
    } catch (error) {
      const fault = toHoldfastError(error);
      if (!isFailure) {
        await this.#journal.commit([errorEvent(this.#stamp, fault.facts.grpc, fault.message, seed.identity)], { release: true });
        return { kind: "interrupted", error: fault, lastSeq: this.#journal.durableSeq };
      }
      this.#context.log.log("warn", "a failed turn left no memory to capture", { session: this.session, code: fault.code });
    }
    return end();
  }

  /** The store refused the turn: what was acknowledged stays, nothing is added, and the lease is given back if that can be done. */
  async #stopWriting(fault: HoldfastError): Promise<void> {
    await this.#leave(fault, async () => {
      await this.#journal.abandon();
      return { kind: "interrupted", error: fault, lastSeq: this.#journal.durableSeq };
    });
  }

  async #end(
    state: EndState,
    before: readonly NewEvent[],
    error?: { readonly grpcCode: number; readonly description: string },
  ): Promise<TurnOutcome> {
    const actor = this.#start.seed.identity;
    const end = { ...endEvent(this.#stamp, state, error, actor), aside: this.#start.meter?.aside };
    const unanswered = this.#sink?.tools.unanswered ?? [];
    if (unanswered.length === 0) {
      const lastSeq = await this.#journal.commit([...before, end], { release: true });
      return { kind: "ended", state, lastSeq };
    }
    const why = state === "CANCELED" ? "was cancelled" : "ended";
    const context = { stamp: this.#stamp, tools: this.#tools, actor, afterSeq: () => this.#journal.issuedSeq, why };
    const { events, receipts } = await closingOf(unanswered, context);
    const lastSeq = await this.#journal.commit([...events, ...before, end], { release: true, receipts });
    return { kind: "ended", state, lastSeq };
  }

  /** Leaves the running phase, once: shuts the gate, then writes the last append, which commits after all that is on its way. */
  async #leave(reason: HoldfastError, last: () => Promise<TurnOutcome>): Promise<void> {
    if (this.#phase !== "running") return;
    this.#phase = "ending";
    for (const timer of this.#timers) timer.cancel();
    this.#gate.shut(reason);
    try {
      const outcome = await last();
      const head = outcome.kind === "interrupted" ? undefined : this.#journal.head;
      this.#start.meter?.close(head);
      this.#context.requests.ended(this.session, head);
      this.#settle(outcome);
    } catch (error) {
      this.#start.meter?.close(undefined);
      this.#context.requests.ended(this.session, undefined);
      const fault = toHoldfastError(error);
      this.#context.log.log("error", "a turn could not write its end", { session: this.session, code: fault.code });
      this.#settle({ kind: "interrupted", error: fault, lastSeq: this.#journal.durableSeq });
    }
  }

  /** The time of a deadline or a budget is over whatever the harness does just now. */
  #watchTimes(): void {
    const { clock } = this.#context.ports;
    const { invocation, meter } = this.#start;
    const leftMs = (): number | undefined => invocation.deadlineMs && invocation.deadlineMs - clock.nowMs();
    const outOfTime = (): void => void this.#fail(this.#outgrew(meter?.reached() ?? "budget wallTime: it is used up"));
    this.#timers = [whenDue(clock, leftMs, () => void this.cancel("TIMEOUT")), whenDue(clock, () => meter?.wallLeftMs, outOfTime)];
  }
}
