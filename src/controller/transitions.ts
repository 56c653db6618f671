/**
 * The transitions of a session that are no turn: cancel, delete, pause, suspend.
 *
 * Invariants:
 * - Each is a compare-and-swap on the row that it was decided on; a lost race reads the session and decides again.
 * - Each is idempotent: where there is nothing to do, nothing is written.
 */

import { HoldfastError } from "../base/errors.ts";
import { SEQ_NONE, type Fence, type HostId, type SessionUid } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import { ComputeState, DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import type { ComputeChange, JournalStore, NewEvent, Receipt, SessionRow } from "../journal/index.ts";
import type { HarnessCatalog, IdentityRef, SuspendedSession } from "../spi/index.ts";
import { closingOf } from "./closing.ts";
import { computeToRestore, journalAlone } from "./compute.ts";
import type { CancelReason } from "./contract.ts";
import { cancelEvent, deleteEvent, endEvent, suspendEvent } from "./events.ts";
import { HostTools } from "./host-tools.ts";
import { appendedOrThrow, deletedError } from "./outcome.ts";
import type { RecordedToolCall } from "./recorded-turn.ts";
import { openTurnOf } from "./recover.ts";
import type { ReplacedCaptures } from "./replaced-captures.ts";
import type { RunningTurns } from "./running.ts";
import type { Turn } from "./turn.ts";

/** How often a transition that lost its compare-and-swap reads the session and tries again. */
export const RACE_ATTEMPTS_MAX = 16;

/** What transitions need of their controller. */
export interface TransitionContext {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly running: RunningTurns;
  readonly replaced: ReplacedCaptures;
  readonly hostId: HostId;
  readonly clock: Clock;
}

/** What a transition appends. */
interface Ending {
  readonly events: readonly NewEvent[];
  readonly receipts?: readonly Receipt[] | undefined;
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
      return this.#append(row, await this.#closing(row, reason), { takeOver: true });
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
      const { events, receipts } = await this.#closing(row, "USER");
      return this.#append(row, { events: [...events, deleteEvent(clock, actor)], receipts }, { takeOver: true });
    });
    await this.#context.harnesses.find(deleted.seed.harness)?.release(session);
    return deleted;
  }

  /** See `Controller.deleteUnbegun`. Whoever takes the session after it was looked at finds it deleted, or keeps this from being written. */
  async deleteUnbegun(session: SessionUid): Promise<boolean> {
    const { journal, harnesses, running, hostId, clock } = this.#context;
    const row = await journal.get(session);
    if (row === undefined || row.projection.lastSeq !== SEQ_NONE || running.isRunning(row)) return false;
    const writer = { kind: "claim", holder: hostId, leaseMs: 0 } as const;
    const outcome = await journal.append({ session, expectedLastSeq: SEQ_NONE, writer, events: [deleteEvent(clock, undefined)] });
    if (outcome.kind === "conflict" || outcome.kind === "held" || outcome.kind === "deleted" || outcome.kind === "not-found") return false;
    appendedOrThrow(outcome);
    await harnesses.find(row.seed.harness)?.release(session);
    return true;
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
      const { compute } = await entry.suspend({ sessionUid: session, kind: "local", fence: row.fence, compute: computeToRestore(row) });
      return this.#append(row, { events: [] }, { takeOver: false, keep, compute: { state: ComputeState.COMPUTE_WARM, ref: compute } });
    });
  }

  /** See `Controller.suspend`. */
  async suspend(session: SessionUid, actor: IdentityRef | undefined): Promise<SessionRow> {
    return this.#transition(session, async (row) => {
      if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw deletedError();
      if (row.projection.computeState === ComputeState.COMPUTE_COLD) return "unchanged";
      if (this.#context.running.isRunning(row)) throw runningError();
      const { snapshot, compute } = await this.#captured(row);
      const events = [suspendEvent(this.#context.clock, snapshot, actor)];
      const result = await this.#append(row, { events }, { takeOver: false, compute: { ref: compute } });
      const harness = this.#context.harnesses.find(row.seed.harness);
      if (result === "done" && harness !== undefined) {
        this.#context.replaced.drop({ session, harness, before: computeToRestore(row), now: compute });
      }
      return result;
    });
  }

  /** The session's state, captured and freed here. A harness that is not served here holds nothing here: the journal is what there is. */
  async #captured(row: SessionRow): Promise<SuspendedSession> {
    const entry = this.#context.harnesses.find(row.seed.harness);
    if (entry === undefined) return { snapshot: journalAlone(row.seed.uid) };
    return entry.suspend({ sessionUid: row.seed.uid, kind: "external", fence: row.fence, compute: computeToRestore(row) });
  }

  /**
   * What ends the open turn, in one append: results for its calls that have none (what nobody decided is denied), CANCEL and END; nothing
   * where none is open. Calls of a parent's stay as they are.
   */
  async #closing(row: SessionRow, reason: CancelReason): Promise<Ending> {
    const open = row.projection.openTurn;
    if (open === undefined) return { events: [] };
    const { clock, journal } = this.#context;
    const actor = row.seed.identity;
    const stamp = { executionId: open.executionId, clock };
    const tools = new HostTools({ journal, session: row.seed.uid });
    const unanswered = await unansweredCalls(journal, row);
    const afterSeq = () => row.projection.lastSeq;
    const { events, receipts } = await closingOf(unanswered, { stamp, tools, actor, afterSeq, why: "was cancelled" });
    return { events: [...events, cancelEvent(stamp, reason, actor), endEvent(stamp, "CANCELED", undefined, actor)], receipts };
  }

  /** One append onto the row that was read, under a fence of its own and without a lease. */
  async #append(row: SessionRow, { events, receipts }: Ending, options: TransitionAppend): Promise<StepResult> {
    const { journal, hostId } = this.#context;
    const { takeOver, keep, compute } = options;
    const outcome = await journal.append({
      session: row.seed.uid,
      expectedLastSeq: row.projection.lastSeq,
      writer: { kind: "claim", holder: hostId, leaseMs: 0, keep, takeOver },
      events,
      compute,
      receipts,
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

/** The session's own calls without a result. A turn whose records contradict themselves can be cancelled all the same. */
async function unansweredCalls(journal: JournalStore, row: SessionRow): Promise<readonly RecordedToolCall[]> {
  const forkSeq = row.parent?.forkSeq ?? 0;
  try {
    const turn = await openTurnOf(journal, row);
    return (turn?.effects ?? [])
      .filter((effect) => effect.kind === "tool")
      .filter(({ seq, result }) => seq > forkSeq && result === undefined);
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "failed_precondition") return [];
    throw error;
  }
}

/**
 * A turn that was interrupted instead, by its harness or by losing its session, is open still, and so is one that was about to park: what
 * becomes of it is decided anew.
 */
async function cancelHere(turn: Turn, reason: CancelReason): Promise<StepResult> {
  const outcome = await turn.cancel(reason);
  return outcome.kind === "ended" ? "done" : "again";
}

function notTheOpenTurn(): HoldfastError {
  return new HoldfastError("failed_precondition", "execution_id: it is not the session's open turn; leave it empty to cancel that one", {
    field: "execution_id",
  });
}

function runningError(): HoldfastError {
  return new HoldfastError("aborted", "session: a turn of it is running; wait for its end or cancel it, then retry");
}
