/** The incarnations that live in this process, and which sessions' guests went too far. */

import { HoldfastError, type SessionUid } from "../../base/index.ts";
import type { Harness, Incarnation } from "../../spi/index.ts";
import type { WaitingTimer } from "./guest-timers.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Layer } from "./snapshot-format.ts";
import type { StoredBase } from "./snapshot-store.ts";

/** One incarnation. */
export interface Resident {
  incarnation: Incarnation;
  readonly sandbox: Sandbox;
  /** What its memory is relative to. */
  readonly base: StoredBase;
  /** The session's stored layers, the newest capture last; empty before the first. */
  chain: readonly Layer[];
  /** How much had been delivered at the newest capture; undefined where it is none of this memory. */
  capturedAt: number | undefined;
  harness: Harness | undefined;
  turns: number;
  isPaused: boolean;
}

/** Sessions whose faults are remembered. */
const SESSIONS_MAX = 10_000;

/** Finds incarnations, and tells which timers of a session come back. */
export class Residents {
  readonly #byId = new Map<string, Resident>();
  readonly #struck = new Map<SessionUid, { readonly lostDueMs: number }>();

  add(resident: Resident): void {
    this.#byId.set(resident.incarnation.id, resident);
  }

  find(id: string): Resident | undefined {
    return this.#byId.get(id);
  }

  remove(id: string): void {
    this.#byId.delete(id);
  }

  all(): Resident[] {
    return [...this.#byId.values()];
  }

  /** The incarnation, alive. Throws UNAVAILABLE where it is gone. */
  living(id: string): Resident {
    const resident = this.#byId.get(id);
    if (resident !== undefined && !resident.sandbox.isGone) return resident;
    throw new HoldfastError("unavailable", "sandbox: it is gone; restore the session from its snapshot");
  }

  /**
   * The session's guest went too far. Where a timer did it, or where it is not the first time since the last capture, the timers that had
   * fallen due by then do not come back: whichever of them led to it would do so again, in every turn to come.
   */
  struck(session: SessionUid, { inTimer, nowMs }: { readonly inTimer: boolean; readonly nowMs: number }): void {
    const before = this.#struck.get(session);
    this.#struck.delete(session);
    this.#struck.set(session, { lostDueMs: inTimer || before !== undefined ? nowMs : Number.NEGATIVE_INFINITY });
    const [oldest] = this.#struck.keys();
    if (this.#struck.size > SESSIONS_MAX && oldest !== undefined) this.#struck.delete(oldest);
  }

  /** The session's memory was captured after whatever it did before. */
  recovered(session: SessionUid): void {
    this.#struck.delete(session);
  }

  /** The timers of a capture that come back, of those sessions whose memory it is. */
  timersLeft(sessions: readonly SessionUid[], timers: readonly WaitingTimer[]): readonly WaitingTimer[] {
    const lostDueMs = Math.max(...sessions.map((session) => this.#struck.get(session)?.lostDueMs ?? Number.NEGATIVE_INFINITY));
    return timers.filter(({ dueMs }) => dueMs > lostDueMs);
  }
}
