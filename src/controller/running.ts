/** The turns that this host runs, and the heartbeat that keeps their leases. */

import { HoldfastError } from "../base/errors.ts";
import type { HostId, SessionUid } from "../base/ids.ts";
import type { Clock, Log, Timer } from "../base/ports.ts";
import type { JournalStore, SessionRow } from "../journal/index.ts";
import type { ControllerLimits } from "./limits.ts";
import type { Turn } from "./turn.ts";

/** What the running turns need of their controller. */
export interface RunningContext {
  readonly store: JournalStore;
  readonly hostId: HostId;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: ControllerLimits;
}

/** A seat that was taken for a turn whose start is not durable yet. */
const STARTING = "starting";

/**
 * At most one turn a session, and so many in all.
 *
 * Invariant: a seat that was lent to another session's turn counts once, and comes back when either turn has ended; a borrower that lent it on
 * leaves it to who has it then. Each seat is lent to one at a time, so all turns together are at most as many as the limit says, times how many
 * may wait for one another in a row.
 */
export class RunningTurns {
  readonly #context: RunningContext;
  readonly #turns = new Map<SessionUid, Turn | typeof STARTING>();
  /** Who has the seat of whom. */
  readonly #borrowers = new Map<SessionUid, SessionUid>();
  #heartbeat: Timer | undefined;

  constructor(context: RunningContext) {
    this.#context = context;
  }

  /** The session's turn, once its start is durable. */
  get(session: SessionUid): Turn | undefined {
    const turn = this.#turns.get(session);
    return turn === STARTING ? undefined : turn;
  }

  /** Every turn whose start is durable. */
  all(): readonly Turn[] {
    return [...this.#turns.values()].filter((turn) => turn !== STARTING);
  }

  /** Whether the session's seat is taken, be its start durable or not. */
  has(session: SessionUid): boolean {
    return this.#turns.has(session);
  }

  /**
   * Whether somebody runs the session's turn. A lease of this host's own without a turn here is what a failed write left behind: it runs
   * out by itself, and until then it keeps nobody here from going on.
   */
  isRunning(row: SessionRow): boolean {
    return this.has(row.seed.uid) || (row.holder !== undefined && row.holder !== this.#context.hostId);
  }

  /** How many seats are taken. */
  get size(): number {
    return this.#turns.size;
  }

  /** Whether there is a seat: a free one, or that of `lentBy`. */
  hasRoom(lentBy: SessionUid | undefined): boolean {
    return !this.#isFull || (lentBy !== undefined && this.#turns.has(lentBy) && !this.#borrowers.has(lentBy));
  }

  /**
   * Takes the session's seat, that of `lentBy` where there is no other. Throws ABORTED when it is taken, RESOURCE_EXHAUSTED when this host
   * runs as many as it may.
   */
  reserve(session: SessionUid, lentBy?: SessionUid): void {
    if (this.#turns.has(session)) {
      throw new HoldfastError("aborted", "session: another turn of it is running; wait for its end, then retry");
    }
    const { turnsRunningMax } = this.#context.limits;
    if (!this.hasRoom(lentBy)) {
      throw new HoldfastError("resource_exhausted", `host: it runs ${turnsRunningMax} turns already; retry later`);
    }
    if (this.#isFull && lentBy !== undefined) this.#borrowers.set(lentBy, session);
    this.#turns.set(session, STARTING);
  }

  /** Gives a reserved seat to its turn. */
  seat(turn: Turn): void {
    this.#turns.set(turn.session, turn);
    this.#beat();
  }

  /** Frees a seat. */
  free(session: SessionUid): void {
    this.#turns.delete(session);
    // Whoever has its seat keeps it.
    const lentTo = this.#borrowers.get(session);
    this.#borrowers.delete(session);
    for (const [lender, borrower] of this.#borrowers) {
      if (borrower !== session) continue;
      if (lentTo === undefined) this.#borrowers.delete(lender);
      else this.#borrowers.set(lender, lentTo);
    }
  }

  get #isFull(): boolean {
    return this.#turns.size - this.#borrowers.size >= this.#context.limits.turnsRunningMax;
  }

  /** Ends the heartbeat. */
  stop(): void {
    this.#heartbeat?.cancel();
    this.#heartbeat = undefined;
  }

  #beat(): void {
    if (this.#heartbeat !== undefined) return;
    this.#heartbeat = this.#context.clock.after(Math.ceil(this.#context.limits.leaseMs / 3), () => {
      this.#heartbeat = undefined;
      void this.#renew();
    });
  }

  async #renew(): Promise<void> {
    const { store, hostId, limits, log } = this.#context;
    const turns = this.all();
    if (turns.length === 0) return;
    try {
      const sessions = turns.map((turn) => ({ session: turn.session, fence: turn.fence }));
      const lost = new Set(await store.renew({ holder: hostId, leaseMs: limits.leaseMs, sessions }));
      for (const turn of turns) {
        if (lost.has(turn.session) && this.get(turn.session) === turn) await turn.lose();
      }
    } catch (error) {
      log.log("warn", "leases could not be renewed", { error: error instanceof Error ? error.name : typeof error });
    }
    if (this.#turns.size > 0) this.#beat();
  }
}
