/**
 * The controller of one host: it plans, begins, cancels and deletes, and owns the turns that run here.
 *
 * Invariants:
 * - One turn a session, on this host by its seat and on all hosts by the lease that its first append takes (I6).
 * - Nothing is written for an invocation that is not valid.
 * - A turn goes on without its client; only END, a cancel, a lost lease or a shutdown stop it.
 */

import { HoldfastError } from "../base/errors.ts";
import { newExecutionId, type SessionUid } from "../base/ids.ts";
import type { IdentityRef } from "../spi/index.ts";
import type { NewEvent, SessionRow, SessionSeed } from "../journal/index.ts";
import { DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
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
import { cancelEvent, deleteEvent, endEvent, executionStartEvent, inputEvent, type EventStamp } from "./events.ts";
import { HistoryCache } from "./history.ts";
import { CONTROLLER_LIMITS, type ControllerLimits } from "./limits.ts";
import { watchSession } from "./live.ts";
import { appendedOrThrow } from "./outcome.ts";
import { planTurn } from "./plan.ts";
import { RunningTurns } from "./running.ts";
import { Turn, type TurnContext } from "./turn.ts";

/** How often a transition that lost its compare-and-swap reads the session and tries again. */
const RACE_ATTEMPTS_MAX = 16;

/** Creates the controller of a host. Disposing it interrupts what still runs. */
export function createController(options: ControllerOptions): Controller {
  return new HostController(options);
}

class HostController implements Controller {
  readonly #options: ControllerOptions;
  readonly #limits: ControllerLimits;
  readonly #turnContext: TurnContext;
  readonly #running: RunningTurns;
  #closing = false;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#limits = { ...CONTROLLER_LIMITS, ...options.limits };
    const { journal: store, models, ports, log, hostId } = options;
    this.#turnContext = {
      store,
      models,
      deltas: new DeltaHub(),
      history: new HistoryCache({ bytesMax: this.#limits.historyCacheBytesMax }),
      ports,
      log,
      limits: this.#limits,
    };
    this.#running = new RunningTurns({ store, hostId, clock: ports.clock, log, limits: this.#limits });
  }

  async plan(session: SessionRow | SessionSeed, invocation: ExecInvocation): Promise<TurnPlan> {
    this.#refuseWhileClosing();
    const { harnesses, ports } = this.#options;
    return planTurn({ harnesses, clock: ports.clock, limits: this.#limits }, session, invocation);
  }

  async begin(session: SessionUid, plan: TurnPlan): Promise<RunningTurn> {
    this.#refuseWhileClosing();
    this.#running.reserve(session);
    let turn: Turn;
    try {
      turn = await this.#start(session, plan);
    } catch (error) {
      this.#running.free(session);
      throw error;
    }
    this.#running.seat(turn);
    void turn.outcome.then(() => this.#running.free(session));
    void turn.run();
    if (this.#closing) void turn.interrupt(closingError());
    return turn;
  }

  async cancel(request: { session: SessionUid; executionId: string; reason: CancelReason }): Promise<SessionRow> {
    const { session, executionId, reason } = request;
    return this.#transition(session, async (row) => {
      const open = row.projection.openTurn;
      if (open === undefined) return "unchanged";
      if (executionId !== "" && executionId !== open.executionId) throw notTheOpenTurn();
      const turn = this.#running.get(session);
      if (turn !== undefined) return cancelHere(turn, reason);
      return this.#closeOpenTurn(row, reason, undefined, []);
    });
  }

  async delete(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow> {
    return this.#transition(session, async (row) => {
      if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) return "unchanged";
      const turn = this.#running.get(session);
      if (turn !== undefined) {
        await cancelHere(turn, "USER");
        return "again";
      }
      const marker = deleteEvent(this.#options.ports.clock, actor);
      return this.#closeOpenTurn(row, "USER", actor, [marker]);
    });
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

  /** The one append that makes a turn durable: its lease, its start and its inputs. */
  async #start(session: SessionUid, plan: TurnPlan): Promise<Turn> {
    const { journal, hostId, ports } = this.#options;
    const executionId = newExecutionId(ports);
    const outcome = appendedOrThrow(
      await journal.append({
        session,
        expectedLastSeq: plan.invocation.expectedLastSeq,
        writer: { kind: "claim", holder: hostId, leaseMs: this.#limits.leaseMs },
        events: startEvents({ executionId, clock: ports.clock }, plan),
      }),
    );
    const first = outcome.records[0];
    if (first === undefined) throw new HoldfastError("internal", "journal: an append returned no records");
    const position = { session, fence: outcome.fence, lastSeq: outcome.projection.lastSeq };
    return new Turn(this.#turnContext, { ...plan, executionId, startSeq: first.seq, position });
  }

  /** Ends a turn that this host does not run, superseding whoever might, and appends `after` with it. */
  async #closeOpenTurn(
    row: SessionRow,
    reason: CancelReason,
    actor: IdentityRef | undefined,
    after: readonly NewEvent[],
  ): Promise<"done" | "again"> {
    const { journal, hostId, ports } = this.#options;
    const { seed, projection } = row;
    const outcome = await journal.append({
      session: seed.uid,
      expectedLastSeq: projection.lastSeq,
      writer: { kind: "claim", holder: hostId, leaseMs: 0, takeOver: true },
      events: [...closingEvents(row, reason, actor ?? seed.identity, ports.clock), ...after],
    });
    if (outcome.kind === "conflict") return "again";
    if (outcome.kind === "deleted") return "again";
    appendedOrThrow(outcome);
    return "done";
  }

  /** Reads the session and tries `step` until it lost no race; resolves with the session as it is then. */
  async #transition(session: SessionUid, step: (row: SessionRow) => Promise<"done" | "unchanged" | "again">): Promise<SessionRow> {
    for (let attempt = 0; attempt < RACE_ATTEMPTS_MAX; attempt++) {
      const row = await this.#row(session);
      const result = await step(row);
      if (result === "unchanged") return row;
      if (result === "done") return this.#row(session);
    }
    throw new HoldfastError("aborted", "session: it changed too often meanwhile; read it, then retry");
  }

  async #row(session: SessionUid): Promise<SessionRow> {
    const row = await this.#options.journal.get(session);
    if (row === undefined) throw new HoldfastError("not_found", "session: no session has this uid");
    return row;
  }
}

function startEvents(stamp: EventStamp, plan: TurnPlan): readonly NewEvent[] {
  const { invocation, harness, descriptor, seed } = plan;
  const start = { invocation, harness: harness.name, harnessVersion: descriptor.version };
  return [
    executionStartEvent(stamp, start, seed.identity),
    ...invocation.inputs.map((message) => inputEvent(stamp, message, invocation.caller)),
  ];
}

/** CANCEL and END for an open turn; nothing where none is open. */
function closingEvents(
  row: SessionRow,
  reason: CancelReason,
  actor: IdentityRef | undefined,
  clock: EventStamp["clock"],
): readonly NewEvent[] {
  const open = row.projection.openTurn;
  if (open === undefined) return [];
  const stamp = { executionId: open.executionId, clock };
  return [cancelEvent(stamp, reason, actor), endEvent(stamp, "CANCELED", undefined, actor)];
}

async function cancelHere(turn: Turn, reason: CancelReason): Promise<"done"> {
  const outcome = await turn.cancel(reason);
  if (outcome.kind === "interrupted") throw outcome.error;
  return "done";
}

function notTheOpenTurn(): HoldfastError {
  return new HoldfastError("failed_precondition", "execution_id: it is not the session's open turn; leave it empty to cancel that one", {
    field: "execution_id",
  });
}

function closingError(): HoldfastError {
  return new HoldfastError("unavailable", "host: it is shutting down; retry with another, or later");
}
