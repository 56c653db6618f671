/**
 * The controller of one host: it plans, begins and recovers turns, and owns those that run here.
 *
 * Invariants:
 * - One turn a session, on this host by its seat and on all hosts by the lease that its first append takes (I6).
 * - Nothing is written for an invocation that is not valid.
 * - A turn goes on without its client; only END, a cancel, a lost lease or a shutdown stop it.
 */

import { HoldfastError } from "../base/errors.ts";
import { newExecutionId, type Seq, type SessionUid } from "../base/ids.ts";
import type { IdentityRef } from "../spi/index.ts";
import type { NewEvent, SessionRow, SessionSeed } from "../journal/index.ts";
import { ComputeState, DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import type {
  CancelReason,
  Controller,
  ControllerOptions,
  ExecInvocation,
  LiveItem,
  RunningTurn,
  TurnPlan,
  WatchRequest,
} from "./contract.ts";
import { DeltaHub } from "./deltas.ts";
import { executionStartEvent, inputEvent, resumeEvent, type EventStamp } from "./events.ts";
import { forkSession, type ForkInvocation } from "./fork.ts";
import { HistoryCache } from "./history.ts";
import { CONTROLLER_LIMITS, type ControllerLimits } from "./limits.ts";
import { watchSession } from "./live.ts";
import { type Appended, appendedOrThrow, deletedError } from "./outcome.ts";
import { planTurn } from "./plan.ts";
import { planRecovery, type RecoveryPlan } from "./recover.ts";
import { MessageOrigins, RequestSketcher } from "./request-sketch.ts";
import { RunningTurns } from "./running.ts";
import { Tape } from "./tape.ts";
import { RACE_ATTEMPTS_MAX, rowOf, Transitions } from "./transitions.ts";
import { computeToRestore } from "./compute.ts";
import { Turn, type TurnContext } from "./turn.ts";

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
  /** Starts of turns that are not durable yet. */
  readonly #starting = new Set<Promise<Turn>>();
  #closing = false;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#limits = { ...CONTROLLER_LIMITS, ...options.limits };
    const { journal, models, ports, log, hostId } = options;
    const origins = new MessageOrigins();
    this.#turnContext = {
      store: journal,
      models,
      deltas: new DeltaHub(),
      history: new HistoryCache({ bytesMax: this.#limits.historyCacheBytesMax }),
      origins,
      sketcher: new RequestSketcher({ origins, digest: ports.digest, keysMax: this.#limits.sketchKeysMax }),
      ports,
      log,
      limits: this.#limits,
    };
    this.#running = new RunningTurns({ store: journal, hostId, clock: ports.clock, log, limits: this.#limits });
    this.#transitions = new Transitions({ journal, running: this.#running, hostId, clock: ports.clock });
  }

  async plan(session: SessionRow | SessionSeed, invocation: ExecInvocation): Promise<TurnPlan> {
    this.#refuseWhileClosing();
    const { harnesses, ports } = this.#options;
    return planTurn({ harnesses, clock: ports.clock, limits: this.#limits }, session, invocation);
  }

  async begin(session: SessionUid, plan: TurnPlan): Promise<RunningTurn> {
    return this.#seated(session, () => this.#start(session, plan));
  }

  async resume(session: SessionUid, actor: IdentityRef | undefined): Promise<{ row: SessionRow; turn: RunningTurn | undefined }> {
    const { journal, ports } = this.#options;
    const row = await rowOf(journal, session);
    if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw deletedError();
    if (row.holder !== undefined || this.#running.has(session)) return { row, turn: undefined };
    const cold = isCold(row);
    const open = row.projection.openTurn;
    const events = cold ? [resumeEvent(ports.clock, actor)] : [];
    if (open === undefined) {
      if (cold) await this.#claim(row, events, { leaseMs: 0 });
      return { row: await rowOf(journal, session), turn: undefined };
    }
    const plan = await planRecovery({ journal, harnesses: this.#options.harnesses, digest: ports.digest }, row, open);
    const turn = await this.#seated(session, () => this.#recover(row, plan, events));
    return { row: await rowOf(journal, session), turn };
  }

  async cancel(request: { session: SessionUid; executionId: string; reason: CancelReason }): Promise<SessionRow> {
    return this.#transitions.cancel(request);
  }

  async delete(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow> {
    return this.#transitions.delete(session, actor);
  }

  async suspend(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow> {
    return this.#transitions.suspend(session, actor);
  }

  async fork(invocation: ForkInvocation): Promise<readonly SessionRow[]> {
    const { journal, harnesses, ports } = this.#options;
    return forkSession({ journal, harnesses, clock: ports.clock }, invocation);
  }

  watch(request: WatchRequest): AsyncGenerator<LiveItem, void, undefined> {
    const { store: journal, deltas } = this.#turnContext;
    const { watchQueueItemsMax: queueItemsMax, watchQueueBytesMax: queueBytesMax } = this.#limits;
    return watchSession({ journal, deltas, queueItemsMax, queueBytesMax }, request);
  }

  running(session: SessionUid): RunningTurn | undefined {
    return this.#running.get(session);
  }

  async shutdown(options: { readonly graceMs: number }): Promise<void> {
    this.#closing = true;
    if (options.graceMs > 0) await this.#drain(options.graceMs);
    // A turn whose start is on its way to the journal has taken its lease there, or is about to.
    await Promise.allSettled(this.#starting);
    await Promise.all(this.#running.all().map((turn) => turn.interrupt(closingError())));
    this.#running.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown({ graceMs: 0 });
  }

  /** Waits until every running turn has ended, or the grace is over. */
  async #drain(graceMs: number): Promise<void> {
    const done = new AbortController();
    const grace = this.#options.ports.clock.sleep(graceMs, { signal: done.signal }).catch(() => undefined);
    await Promise.race([Promise.all(this.#running.all().map((turn) => turn.outcome)), grace]);
    done.abort();
  }

  #refuseWhileClosing(): void {
    if (this.#closing) throw closingError();
  }

  /** Runs the turn that `start` makes durable, in the session's seat. */
  async #seated(session: SessionUid, start: () => Promise<Turn>): Promise<RunningTurn> {
    this.#refuseWhileClosing();
    this.#running.reserve(session);
    let turn: Turn;
    const starting = start();
    this.#starting.add(starting);
    try {
      turn = await starting;
    } catch (error) {
      this.#running.free(session);
      throw error;
    } finally {
      this.#starting.delete(starting);
    }
    this.#running.seat(turn);
    void turn.outcome.then(() => this.#running.free(session));
    void turn.run();
    if (this.#closing) void turn.interrupt(closingError());
    return turn;
  }

  /** The one append that makes a turn durable: its lease, its start and its inputs; RESUME before them on a cold session. */
  async #start(session: SessionUid, plan: TurnPlan): Promise<Turn> {
    const { journal, hostId, ports } = this.#options;
    const executionId = newExecutionId(ports);
    const events = startEvents({ executionId, clock: ports.clock }, plan);
    for (let attempt = 1; ; attempt++) {
      const row = await rowOf(journal, session);
      const resume = isCold(row) ? [resumeEvent(ports.clock, plan.invocation.caller)] : [];
      const outcome = await journal.append({
        session,
        expectedLastSeq: plan.invocation.expectedLastSeq ?? row.projection.lastSeq,
        writer: { kind: "claim", holder: hostId, leaseMs: this.#limits.leaseMs },
        events: [...resume, ...events],
      });
      if (outcome.kind === "conflict" && plan.invocation.expectedLastSeq === undefined && attempt < RACE_ATTEMPTS_MAX) continue;
      const { fence, projection } = appendedOrThrow(outcome);
      const startSeq = (projection.lastSeq - events.length + 1) as Seq;
      const firstSeq = (startSeq - resume.length) as Seq;
      const position = { session, fence, lastSeq: projection.lastSeq };
      const compute = computeToRestore(row);
      return new Turn(this.#turnContext, { ...plan, executionId, compute, startSeq, firstSeq, position, tape: Tape.empty() });
    }
  }

  /** Takes an interrupted turn up again: a lease of its own, nothing written but RESUME on a cold session. */
  async #recover(row: SessionRow, plan: RecoveryPlan, events: readonly NewEvent[]): Promise<Turn> {
    const { turn, executionId, invocation, harness, descriptor } = plan;
    const outcome = await this.#claim(row, events, { leaseMs: this.#limits.leaseMs });
    return new Turn(this.#turnContext, {
      executionId,
      recordedId: turn.executionId === "" ? "" : undefined,
      seed: row.seed,
      invocation,
      harness,
      descriptor,
      compute: computeToRestore(row),
      startSeq: turn.startSeq,
      position: { session: row.seed.uid, fence: outcome.fence, lastSeq: outcome.projection.lastSeq },
      tape: new Tape({ effects: turn.effects, atEnd: "live", lastSeq: turn.lastSeq }),
    });
  }

  async #claim(row: SessionRow, events: readonly NewEvent[], lease: { readonly leaseMs: number }): Promise<Appended> {
    const { journal, hostId } = this.#options;
    const writer = { kind: "claim", holder: hostId, leaseMs: lease.leaseMs } as const;
    return appendedOrThrow(await journal.append({ session: row.seed.uid, expectedLastSeq: row.projection.lastSeq, writer, events }));
  }
}

function isCold(row: SessionRow): boolean {
  return row.projection.computeState === ComputeState.COMPUTE_COLD;
}

function startEvents(stamp: EventStamp, plan: TurnPlan): readonly NewEvent[] {
  const { invocation, harness, descriptor, seed } = plan;
  const start = { invocation, harness: harness.name, harnessVersion: descriptor.version };
  return [
    executionStartEvent(stamp, start, seed.identity),
    ...invocation.inputs.map((message) => inputEvent(stamp, message, invocation.caller)),
  ];
}

function closingError(): HoldfastError {
  return new HoldfastError("unavailable", "host: it is shutting down; retry with another, or later");
}
