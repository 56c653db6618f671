/** What somebody who waits for a session is woken by. */

import type { SessionUid } from "../../base/ids.ts";
import type { Clock } from "../../base/ports.ts";
import type { JournalStore } from "../../journal/index.ts";

/** Wakes whoever waits: at each commit of a session, and when one of some signals fires. */
export class Waking implements Disposable {
  readonly #unwatch: () => void;
  readonly #signals: readonly AbortSignal[];
  readonly #ring = (): void => this.#rung.resolve();
  #rung = Promise.withResolvers<void>();

  constructor(journal: JournalStore, session: SessionUid, signals: readonly AbortSignal[]) {
    this.#unwatch = journal.watch(session, this.#ring);
    this.#signals = signals;
    for (const signal of signals) signal.addEventListener("abort", this.#ring, { once: true });
  }

  /** Forgets what happened: to be called before the session is looked at. */
  reset(): void {
    this.#rung = Promise.withResolvers();
  }

  /** Resolves when something has happened since `reset`. */
  woken(): Promise<void> {
    return this.#rung.promise;
  }

  /** The same, or once `ms` are over. */
  async wokenWithin(clock: Clock, ms: number): Promise<void> {
    const timer = clock.after(ms, this.#ring);
    await this.#rung.promise;
    timer.cancel();
  }

  [Symbol.dispose](): void {
    this.#unwatch();
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#ring);
  }
}

/** Resolves when `work` has, or a signal fires; what `work` comes to is its own. */
export async function settledOrFired(work: Promise<unknown>, signals: readonly AbortSignal[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = (): void => resolve();
  for (const signal of signals) {
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) resolve();
  }
  work.then(done, done);
  await promise;
  for (const signal of signals) signal.removeEventListener("abort", done);
}
