/**
 * The transitions of a session that are no turn: cancel, delete, pause, suspend.
 *
 * Invariants:
 * - Each is a compare-and-swap on the row that it was decided on; a lost race reads the session and decides again.
 * - Each is idempotent: where there is nothing to do, nothing is written.
 */

import { HoldfastError } from "../base/errors.ts";
import type { Fence, HostId, SessionUid } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import { ComputeState, DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import type { ComputeChange, JournalStore, NewEvent, SessionRow } from "../journal/index.ts";
import type { HarnessCatalog, IdentityRef, SuspendedSession } from "../spi/index.ts";
import { computeToRestore, journalAlone } from "./compute.ts";
import type { CancelReason } from "./contract.ts";
import { cancelEvent, deleteEvent, endEvent, suspendEvent } from "./events.ts";
import { appendedOrThrow, deletedError } from "./outcome.ts";
import type { RunningTurns } from "./running.ts";
import type { Turn } from "./turn.ts";

/** How often a transition that lost its compare-and-swap reads the session and tries again. */
export const RACE_ATTEMPTS_MAX = 16;

/** What transitions need of their controller. */
export interface TransitionContext {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly running: RunningTurns;
  readonly hostId: HostId;
  readonly clock: Clock;
}

type StepResult = "done" | "unchanged" | "again";

interface TransitionAppend {
  readonly takeOver: boolean;
  /** The fence to go on under, where an incarnation that was given it lives on. */
  readonly keep?: Fence | undefined;
  readonly compute?: ComputeChange | undefined;
}

/** The transitions of a host's sessions. */
export class Transitions {
  readonly #context: TransitionContext;

  constructor(context: TransitionContext) {
    this.#context = context;
  }

  /** See `Controller.cancel`. */
  async cancel(request: { session: SessionUid; executionId: string; reason: CancelReason }): Promise<SessionRow> {
    const { session, executionId, reason } = request;
    return this.#transition(session, async (row) => {
      const open = row.projection.openTurn;
      if (open === undefined) return "unchanged";
      if (executionId !== "" && executionId !== open.executionId) throw notTheOpenTurn();
      const turn = this.#context.running.get(session);
      // One that runs here under another id has been superseded without knowing it yet, or began after the row was read: the
      // append below takes the session from the one, and is refused by the head for the other.
      const runsHere = turn !== undefined && (open.executionId === "" || open.executionId === turn.executionId);
      if (runsHere) return cancelHere(turn, reason);
      return this.#append(row, closingEvents(row, reason, row.seed.identity, this.#context.clock), { takeOver: true });
    });
  }

  /** See `Controller.delete`. */
  async delete(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow> {
    const deleted = await this.#transition(session, async (row) => {
      if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) return "unchanged";
      const turn = this.#context.running.get(session);
      if (turn !== undefined) {
        await cancelHere(turn, "USER");
        return "again";
      }
      const { clock } = this.#context;
      const events = [...closingEvents(row, "USER", row.seed.identity, clock), deleteEvent(clock, actor)];
      return this.#append(row, events, { takeOver: true });
    });
    await this.#context.harnesses.find(deleted.seed.harness)?.release(session);
    return deleted;
  }

  /**
   * Keeps an idle session warm on this node. What is not idle, is cold, or holds nothing here stays as it is: nobody asked for this, so
   * nothing is an error.
   */
  async pause(session: SessionUid): Promise<SessionRow> {
    return this.#transition(session, async (row) => {
      const { deletionState, computeState, openTurn } = row.projection;
      const entry = this.#context.harnesses.find(row.seed.harness);
      const keep = entry?.fenceOf(session);
      const isIdle = deletionState === DeletionState.DELETION_ACTIVE && openTurn === undefined && row.holder === undefined;
      if (!isIdle || computeState !== ComputeState.COMPUTE_LIVE || entry === undefined || keep !== row.fence) return "unchanged";
      if (this.#context.running.has(session)) return "unchanged";
      const { compute } = await entry.suspend({ sessionUid: session, kind: "local", compute: computeToRestore(row) });
      return this.#append(row, [], { takeOver: false, keep, compute: { state: ComputeState.COMPUTE_WARM, ref: compute } });
    });
  }

  /** See `Controller.suspend`. */
  async suspend(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow> {
    return this.#transition(session, async (row) => {
      if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw deletedError();
      if (row.projection.computeState === ComputeState.COMPUTE_COLD) return "unchanged";
      if (row.holder !== undefined || this.#context.running.has(session)) throw runningError();
      const { snapshot, compute } = await this.#captured(row);
      return this.#append(row, [suspendEvent(this.#context.clock, snapshot, actor)], { takeOver: false, compute: { ref: compute } });
    });
  }

  /** The session's state, captured and freed here. A harness that is not served here holds nothing here: the journal is what there is. */
  async #captured(row: SessionRow): Promise<SuspendedSession> {
    const entry = this.#context.harnesses.find(row.seed.harness);
    if (entry === undefined) return { snapshot: journalAlone(row.seed.uid) };
    return entry.suspend({ sessionUid: row.seed.uid, kind: "external", compute: computeToRestore(row) });
  }

  /** One append onto the row that was read, under a fence of its own and without a lease. */
  async #append(row: SessionRow, events: readonly NewEvent[], options: TransitionAppend): Promise<StepResult> {
    const { journal, hostId } = this.#context;
    const { takeOver, keep, compute } = options;
    const outcome = await journal.append({
      session: row.seed.uid,
      expectedLastSeq: row.projection.lastSeq,
      writer: { kind: "claim", holder: hostId, leaseMs: 0, keep, takeOver },
      events,
      compute,
    });
    const isRaced = outcome.kind === "conflict" || outcome.kind === "deleted" || (keep !== undefined && outcome.kind === "fenced");
    if (isRaced) return "again";
    appendedOrThrow(outcome);
    return "done";
  }

  /** Reads the session and tries `step` until it lost no race; resolves with the session as it is then. */
  async #transition(session: SessionUid, step: (row: SessionRow) => Promise<StepResult>): Promise<SessionRow> {
    for (let attempt = 0; attempt < RACE_ATTEMPTS_MAX; attempt++) {
      const row = await rowOf(this.#context.journal, session);
      const result = await step(row);
      if (result === "unchanged") return row;
      if (result === "done") return rowOf(this.#context.journal, session);
    }
    throw new HoldfastError("aborted", "session: it changed too often meanwhile; read it, then retry");
  }
}

/** The row of a session. Throws NOT_FOUND for an unknown one. */
export async function rowOf(journal: JournalStore, session: SessionUid): Promise<SessionRow> {
  const row = await journal.get(session);
  if (row === undefined) throw new HoldfastError("not_found", "session: no session has this uid");
  return row;
}

/** CANCEL and END for an open turn; nothing where none is open. */
function closingEvents(row: SessionRow, reason: CancelReason, actor: IdentityRef | undefined, clock: Clock): readonly NewEvent[] {
  const open = row.projection.openTurn;
  if (open === undefined) return [];
  const stamp = { executionId: open.executionId, clock };
  return [cancelEvent(stamp, reason, actor), endEvent(stamp, "CANCELED", undefined, actor)];
}

/** A turn that was interrupted instead, by its harness or by losing its session, is open still: what becomes of it is decided anew. */
async function cancelHere(turn: Turn, reason: CancelReason): Promise<StepResult> {
  const outcome = await turn.cancel(reason);
  return outcome.kind === "interrupted" ? "again" : "done";
}

function notTheOpenTurn(): HoldfastError {
  return new HoldfastError("failed_precondition", "execution_id: it is not the session's open turn; leave it empty to cancel that one", {
    field: "execution_id",
  });
}

function runningError(): HoldfastError {
  return new HoldfastError("aborted", "session: a turn of it is running; wait for its end or cancel it, then retry");
}
