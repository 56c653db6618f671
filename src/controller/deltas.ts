/** Ephemeral deltas of the turns that run on this host. They are never journaled, hashed or replayed. */

import type { SessionUid } from "../base/ids.ts";
import type { Delta } from "../spi/index.ts";

/** Called for each delta; must not throw and must return quickly. */
export type DeltaListener = (delta: Delta) => void;

/** Hands deltas to whoever watches; what nobody watches is gone. */
export class DeltaHub {
  readonly #listeners = new Map<SessionUid, Set<DeltaListener>>();

  /** Whether a delta of this session would reach anybody. */
  watched(session: SessionUid): boolean {
    return this.#listeners.has(session);
  }

  publish(session: SessionUid, delta: Delta): void {
    for (const listener of this.#listeners.get(session) ?? []) listener(delta);
  }

  /** Listens until the returned function is called. */
  listen(session: SessionUid, listener: DeltaListener): () => void {
    const listeners = this.#listeners.get(session) ?? new Set<DeltaListener>();
    listeners.add(listener);
    this.#listeners.set(session, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(session) === listeners) this.#listeners.delete(session);
    };
  }
}
