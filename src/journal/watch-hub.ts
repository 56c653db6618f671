/**
 * Watchers of commits.
 *
 * A listener is the caller's code. One that throws is told of nothing more: it has missed something, and a watcher that
 * misses a record without knowing is worse than one that is gone.
 */

import type { SessionUid } from "../base/ids.ts";
import type { Log } from "../base/ports.ts";
import type { StoredRecord } from "./record.ts";
import type { CommitListener, Unwatch } from "./store.ts";

/** The listeners of a store, by session. */
export class WatchHub {
  readonly #log: Log;
  readonly #listeners = new Map<SessionUid, Set<CommitListener>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** The number of sessions that are watched. */
  get size(): number {
    return this.#listeners.size;
  }

  /** Adds a listener. The same function may be added more than once and is then called as often. */
  watch(session: SessionUid, listener: CommitListener): Unwatch {
    const own: CommitListener = (records) => listener(records);
    const listeners = this.#listeners.get(session) ?? new Set();
    this.#listeners.set(session, listeners.add(own));
    return () => this.#drop(session, own);
  }

  /** Calls every listener of `session`. Never throws. A listener that is removed by an earlier one is not called any more. */
  notify(session: SessionUid, records: readonly StoredRecord[]): void {
    const listeners = this.#listeners.get(session);
    if (listeners === undefined) return;
    // One that a listener adds hears of the next commit first.
    for (const listener of Array.from(listeners)) {
      if (!listeners.has(listener)) continue;
      try {
        listener(records);
      } catch (error) {
        this.#drop(session, listener);
        const reason = error instanceof Error ? error.name : typeof error;
        this.#log.log("error", "a commit listener threw and was removed", { session, reason });
      }
    }
  }

  /** Removes every listener. */
  clear(): void {
    this.#listeners.clear();
  }

  #drop(session: SessionUid, listener: CommitListener): void {
    const listeners = this.#listeners.get(session);
    if (listeners === undefined) return;
    listeners.delete(listener);
    if (listeners.size === 0 && this.#listeners.get(session) === listeners) this.#listeners.delete(session);
  }
}
