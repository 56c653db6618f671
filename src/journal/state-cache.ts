/**
 * The states that a store knows to be durable, so that a session in use costs no look-up.
 *
 * Invariants:
 * - Only durable states enter, each newer than the one it replaces. The store is the only writer of its sessions, so what
 *   is here is true.
 * - The number of cached states is bounded; the least recently used one goes first. Leases are kept apart and never go:
 *   they are not in the store's rows, and there are no more of them than turns that run.
 */

import type { SessionUid } from "../base/ids.ts";
import type { Lease, SessionState } from "./session-state.ts";

/** A bounded cache over a store's session rows. */
export class StateCache {
  readonly #limit: number;
  readonly #readState: (session: SessionUid) => SessionState | undefined;
  readonly #states = new Map<SessionUid, SessionState>();
  readonly #leases = new Map<SessionUid, Lease>();

  /** `readState` reads a session's durable state, without its lease. */
  constructor(limit: number, readState: (session: SessionUid) => SessionState | undefined) {
    this.#limit = limit;
    this.#readState = readState;
  }

  /** The durable state of a session, from here or from the store. */
  load(session: SessionUid): SessionState | undefined {
    const cached = this.#states.get(session);
    if (cached !== undefined) {
      this.#states.delete(session);
      this.#states.set(session, cached);
      return cached;
    }
    const read = this.#readState(session);
    if (read === undefined) return undefined;
    const state = this.leased(read);
    this.#remember(state);
    return state;
  }

  /** Takes over a state that has just become durable. */
  publish(state: SessionState): void {
    const { uid } = state.seed;
    if (state.lease === undefined) this.#leases.delete(uid);
    else this.#leases.set(uid, state.lease);
    this.#states.delete(uid);
    this.#remember(state);
  }

  /** Forgets a session that is gone for good. */
  drop(session: SessionUid): void {
    this.#leases.delete(session);
    this.#states.delete(session);
  }

  /** A state that was read from the store, with the session's lease. */
  leased(read: SessionState): SessionState {
    const lease = this.#leases.get(read.seed.uid);
    return lease === undefined ? read : { ...read, lease };
  }

  /** Forgets every state, but no lease. */
  clear(): void {
    this.#states.clear();
  }

  #remember(state: SessionState): void {
    this.#states.set(state.seed.uid, state);
    if (this.#states.size <= this.#limit) return;
    const oldest = this.#states.keys().next();
    if (oldest.done !== true) this.#states.delete(oldest.value);
  }
}
