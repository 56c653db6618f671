/**
 * The controller of one host: it plans, begins and recovers turns, and owns those that run here.
 *
 * Invariants:
 * - One turn a session, on this host by its seat and on all hosts by the lease that its first append takes (I6).
 * - Nothing is written for an invocation that is not valid.
 * - A turn goes on without its client; only END, a cancel, a lost lease or a shutdown stop it.
 */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import { executionIdOf, newUuid, type ExecutionId, type Fence, type Seq, type SessionUid } from "../base/ids.ts";
import type { IdentityRef, TurnToolsRequest } from "../spi/index.ts";
import type { NewEvent, SessionRow, SessionSeed, StoredRecord } from "../journal/index.ts";
import { ComputeState, DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import { approve, type Approval } from "./approve.ts";
import type {
  CancelReason,
  Controller,
  ControllerOptions,
  ExecInvocation,
  FollowItem,
  LiveItem,
  RunningTurn,
  SeatOptions,
  ShutdownOptions,
  Steering,
  TurnOutcome,
  TurnPlan,
  WatchRequest,
} from "./contract.ts";
import { DeltaHub } from "./deltas.ts";
import { resumeEvent } from "./events.ts";
import { forkSession, type ForkContext, type ForkInvocation } from "./fork.ts";
import { HistoryCache } from "./history.ts";
import { LastRequests } from "./last-requests.ts";
import { steerable } from "./inbox.ts";
import { CONTROLLER_LIMITS, type ControllerLimits } from "./limits.ts";
import { followSession, watchSession, type LiveSources } from "./live.ts";
import { approvalRefOf, isParkedUndecided, ownApprovals } from "./open-approvals.ts";
import { ToolOffers } from "./offered-tools.ts";
import { type Appended, appendedOrThrow, closingError, deletedError } from "./outcome.ts";
import { Partials } from "./partials.ts";
import { planTurn } from "./plan.ts";
import { planRecovery } from "./recover.ts";
import { MessageOrigins } from "./request-sketch.ts";
import { ReplacedCaptures } from "./replaced-captures.ts";
import { RunningTurns } from "./running.ts";
import { settleCall, type Settlement } from "./settle-call.ts";
import { noTurnError, steerTurn } from "./steer.ts";
import { rowOf, type TransitionContext, Transitions } from "./transitions.ts";
import { TurnBeginnings } from "./begin.ts";
import { Budgets } from "./budgets.ts";
import { isAsleep } from "./compute.ts";
import { IdleSessions } from "./idle.ts";
import type { TurnContext } from "./turn-start.ts";
import { executorOf } from "./turn-tools.ts";
import { isCold, keptFence, wakeOrRelease } from "./bring-back.ts";
import type { Turn } from "./turn.ts";

/** Creates the controller of a host. Disposing it interrupts what still runs. */
export function createController(options: ControllerOptions): Controller {
  return new HostController(options);
}

class HostController implements Controller {
  readonly #options: ControllerOptions;
  readonly #limits: ControllerLimits;
  readonly #turnContext: TurnContext;
  readonly #running: RunningTurns;
  readonly #transitions: Transitions;
  readonly #idle: IdleSessions;
  readonly #replaced: ReplacedCaptures;
  readonly #context: TransitionContext;
  readonly #beginnings: TurnBeginnings;
  /** Starts of turns that are not durable yet. */
  readonly #starting = new Map<SessionUid, Promise<Turn>>();
  readonly #closing = new AbortController();

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#limits = { ...CONTROLLER_LIMITS, ...options.limits };
    const { journal, harnesses, models, ports, log, hostId } = options;
    const origins = new MessageOrigins();
    this.#turnContext = {
      store: journal,
      models,
      deltas: new DeltaHub(),
      partials: new Partials(),
      history: new HistoryCache({ bytesMax: this.#limits.historyCacheBytesMax }),
      origins,
      requests: new LastRequests({
        origins,
        digest: ports.digest,
        keysMax: this.#limits.sketchKeysMax,
        bytesMax: this.#limits.requestPrefixBytesMax,
      }),
      ports,
      log,
      limits: this.#limits,
      policies: options.policies ?? [],
      outputs: options.outputs,
      tokens: options.tokens,
    };
    const budgets = options.budgets && new Budgets({ journal, clock: ports.clock, config: options.budgets });
    this.#beginnings = new TurnBeginnings({ options, turns: this.#turnContext, offers: new ToolOffers(journal, ports.digest), budgets });
    this.#running = new RunningTurns({ store: journal, hostId, clock: ports.clock, log, limits: this.#limits });
    this.#replaced = new ReplacedCaptures(journal, log);
    this.#context = { journal, harnesses, running: this.#running, replaced: this.#replaced, hostId, clock: ports.clock };
    this.#transitions = new Transitions(this.#context);
    this.#idle = new IdleSessions({
      clock: ports.clock,
      log,
      policy: options.idle ?? {},
      pause: (session) => this.#transitions.pause(session),
      suspend: (session) => this.#transitions.suspend(session, undefined),
    });
  }

  async plan(session: SessionRow | SessionSeed, invocation: ExecInvocation): Promise<TurnPlan> {
    this.#refuseWhileClosing();
    const { harnesses, ports } = this.#options;
    return planTurn({ harnesses, clock: ports.clock, limits: this.#limits }, session, invocation);
  }

  async begin(session: SessionUid, plan: TurnPlan, options: SeatOptions = {}): Promise<RunningTurn> {
    if (plan.continues) return this.#continue(session, plan, options);
    return this.#seated(session, options, () => this.#beginnings.start(session, plan));
  }

  hasRoom({ lentBy }: SeatOptions = {}): boolean {
    return this.#running.hasRoom(lentBy);
  }

  async resume(
    session: SessionUid,
    actor: IdentityRef | undefined,
    options: SeatOptions = {},
  ): Promise<{ row: SessionRow; turn: RunningTurn | undefined }> {
    return this.#resume(session, actor, options);
  }

  async #resume(
    session: SessionUid,
    actor: IdentityRef | undefined,
    options: SeatOptions & { readonly deadlineMs?: number | undefined },
  ): Promise<{ row: SessionRow; turn: RunningTurn | undefined }> {
    const { journal, ports } = this.#options;
    const row = await rowOf(journal, session);
    if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw deletedError();
    if (this.#running.isRunning(row)) return { row, turn: undefined };
    if (isParkedUndecided(row)) return { row, turn: undefined };
    const open = row.projection.openTurn;
    const events = isCold(row) ? [resumeEvent(ports.clock, actor)] : [];
    if (open === undefined) {
      if (isAsleep(row)) await this.#wake(row, events);
      return { row: await rowOf(journal, session), turn: undefined };
    }
    const { harnesses } = this.#options;
    const toolsOf = (recorded: Omit<TurnToolsRequest, "session">) => executorOf(this.#options, { session, ...recorded });
    const plan = await planRecovery({ journal, harnesses, digest: ports.digest, toolsOf }, row, open);
    const { deadlineMs } = options;
    const turn = await this.#seated(session, options, () =>
      this.#beginnings.recover(row, { ...plan, invocation: { ...plan.invocation, deadlineMs } }, events),
    );
    return { row: await rowOf(journal, session), turn };
  }

  /** What Exec without inputs does while an approval call has no receipt: what Resume does, seen from the head on. */
  async #continue(session: SessionUid, { invocation }: TurnPlan, options: SeatOptions): Promise<RunningTurn> {
    const { journal } = this.#options;
    const { expectedLastSeq, caller, deadlineMs } = invocation;
    const before = await rowOf(journal, session);
    const { lastSeq } = before.projection;
    if (expectedLastSeq !== undefined && expectedLastSeq !== lastSeq) appendedOrThrow({ kind: "conflict", lastSeq });
    if (this.#running.isRunning(before)) appendedOrThrow({ kind: "held", holder: this.#options.hostId });
    const [oldest] = ownApprovals(before);
    if (oldest === undefined) throw new HoldfastError("aborted", "session: its turn went on meanwhile; read the session, then retry");
    const startSeq = (lastSeq + 1) as Seq;
    const { turn } = await this.#resume(session, caller, { ...options, deadlineMs });
    if (turn !== undefined) return { session, executionId: turn.executionId, startSeq, outcome: turn.outcome };
    const ref = approvalRefOf(before, oldest);
    return { session, executionId: executionIdOf(ref.executionId), startSeq, outcome: Promise.resolve({ kind: "parked", ref, lastSeq }) };
  }

  async approve(approval: Approval): Promise<{ row: SessionRow; decision: StoredRecord }> {
    return approve(this.#context, approval);
  }

  async settle(settlement: Settlement): Promise<SessionRow> {
    return settleCall(this.#context, settlement);
  }

  async cancel(request: { session: SessionUid; executionId: string; reason: CancelReason }): Promise<SessionRow> {
    // A turn that is being started has no record yet that could be cancelled.
    await this.#starting.get(request.session)?.catch(() => undefined);
    return this.#transitions.cancel(request);
  }

  async delete(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow> {
    return this.#transitions.delete(session, actor);
  }

  async deleteUnbegun(session: SessionUid): Promise<boolean> {
    await this.#starting.get(session)?.catch(() => undefined);
    return this.#transitions.deleteUnbegun(session);
  }

  async suspend(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow> {
    return this.#transitions.suspend(session, actor);
  }

  async fork(invocation: ForkInvocation): Promise<readonly SessionRow[]> {
    const { journal, harnesses, ports } = this.#options;
    const suspend: ForkContext["suspend"] = (session, actor) => this.#transitions.suspend(session, actor);
    return forkSession({ journal, harnesses, clock: ports.clock, suspend }, invocation);
  }

  watch(request: WatchRequest): AsyncGenerator<LiveItem, void, undefined> {
    return watchSession(this.#liveSources, request);
  }

  follow(request: Omit<WatchRequest, "deltas">): AsyncGenerator<FollowItem, void, undefined> {
    return followSession({ ...this.#liveSources, partials: this.#turnContext.partials }, request);
  }

  get #liveSources(): LiveSources {
    const { store: journal, deltas } = this.#turnContext;
    const { watchQueueItemsMax: queueItemsMax, watchQueueBytesMax: queueBytesMax } = this.#limits;
    return { journal, deltas, queueItemsMax, queueBytesMax };
  }

  async steer(
    steering: Steering,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<{ executionId: ExecutionId; seq: Seq }> {
    const message = steerable(steering.message);
    const turn = this.#running.get(steering.session);
    if (turn === undefined) throw noTurnError();
    const watched = (request: WatchRequest): ReturnType<Controller["watch"]> => this.watch(request);
    return steerTurn(turn, { message, from: steering.from, id: newUuid(this.#options.ports) }, watched, options.signal);
  }

  running(session: SessionUid): RunningTurn | undefined {
    return this.#running.get(session);
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  async shutdown(options: ShutdownOptions): Promise<void> {
    this.#closing.abort(closingError());
    this.#idle.stop();
    if (options.graceMs > 0) await this.#drain(options);
    // A turn whose start is on its way to the journal has taken its lease there, or is about to.
    await Promise.allSettled(this.#starting.values());
    await Promise.all(this.#running.all().map((turn) => turn.interrupt(closingError())));
    this.#running.stop();
    await this.#replaced.settled();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown({ graceMs: 0 });
  }

  /** Waits until every running turn has ended or waits for a client that is not there, or the grace is over. */
  async #drain({ graceMs, untilClientIsMissed }: ShutdownOptions): Promise<void> {
    const done = new AbortController();
    const grace = this.#options.ports.clock.sleep(graceMs, { signal: done.signal }).catch(() => undefined);
    const turns = this.#running.all().map(({ outcome, session }) => {
      const missed = untilClientIsMissed?.(session, done.signal);
      return missed === undefined ? outcome : Promise.race([outcome, missed]);
    });
    await Promise.race([Promise.all(turns), grace]);
    done.abort();
  }

  #refuseWhileClosing(): void {
    if (this.closing.aborted) throw closingError();
  }

  /** Runs the turn that `start` makes durable, in the session's seat. */
  async #seated(session: SessionUid, { lentBy }: SeatOptions, start: () => Promise<Turn>): Promise<RunningTurn> {
    this.#refuseWhileClosing();
    this.#running.reserve(session, lentBy);
    let turn: Turn;
    const starting = start();
    this.#starting.set(session, starting);
    try {
      turn = await starting;
    } catch (error) {
      this.#running.free(session);
      throw error;
    } finally {
      this.#starting.delete(session);
    }
    this.#running.seat(turn);
    this.#idle.ended(session);
    void turn.outcome.then((outcome) => {
      this.#running.free(session);
      this.#leaveSandbox(turn, outcome);
      if (outcome.kind === "ended") this.#replaced.drop({ session, harness: turn.harness, ...turn.compute });
    });
    void turn.run();
    if (this.closing.aborted) void turn.interrupt(closingError());
    return turn;
  }

  /** The sandbox of a turn that ended in order waits for the next one. Whatever another turn left is in no state to go on from. */
  #leaveSandbox(turn: Turn, outcome: TurnOutcome): void {
    if (!turn.harness.sandboxed) return;
    const isWhole = outcome.kind === "ended" && outcome.state !== "CANCELED";
    if (isWhole && turn.isOwnHarness) return this.#idle.began(turn.session);
    turn.harness.release(turn.session).catch((error: unknown) => {
      const { code } = toHoldfastError(error);
      this.#options.log.log("warn", "a sandbox could not be destroyed", { session: turn.session, code });
    });
  }

  /** Brings the sandbox of a session back, then records that it is: a session that cannot be restored stays as it is. */
  async #wake(row: SessionRow, events: readonly NewEvent[]): Promise<void> {
    const { harnesses, journal } = this.#options;
    const session = row.seed.uid;
    const entry = harnesses.find(row.seed.harness);
    if (entry?.sandboxed !== true) return void (await this.#claim(row, events, { leaseMs: 0 }));
    this.#running.reserve(session);
    try {
      const { fence } = await this.#claim(row, [], { leaseMs: this.#limits.leaseMs, keep: keptFence(row, entry) });
      const woken = await wakeOrRelease(journal, row, entry, fence);
      const writer = { kind: "release", fence } as const;
      const compute = { state: ComputeState.COMPUTE_LIVE, ref: woken };
      appendedOrThrow(await journal.append({ session, expectedLastSeq: row.projection.lastSeq, writer, events, compute }));
      this.#idle.began(session);
    } finally {
      this.#running.free(session);
    }
  }

  async #claim(
    row: SessionRow,
    events: readonly NewEvent[],
    lease: { readonly leaseMs: number; readonly keep?: Fence | undefined },
  ): Promise<Appended> {
    const { journal, hostId } = this.#options;
    const writer = { kind: "claim", holder: hostId, ...lease } as const;
    return appendedOrThrow(await journal.append({ session: row.seed.uid, expectedLastSeq: row.projection.lastSeq, writer, events }));
  }
}
