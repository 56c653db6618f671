/**
 * The life of one simulated host, and its clock.
 *
 * Invariants:
 * - A dead host does nothing more: nothing that it waits for is ever answered, none of its timers fires. Its memory is out of reach.
 * - A host that pauses (a stopped process, a partition) goes on later as if nothing had been: its timers are late, its calls wait.
 */

import { HoldfastError, type Clock, type Timer } from "../../base/index.ts";

/** Whether a host lives, and what time it thinks it is. */
export class HostLife {
  /** The clock that the host is given. It may be wrong by `skewMs`. */
  readonly clock: Clock;
  /** Rejects with UNAVAILABLE at the host's death: what a client sees of it. */
  readonly death: Promise<never>;
  skewMs = 0;
  readonly #base: Clock;
  #dead = false;
  #pausedUntilMs = 0;
  #die: (error: HoldfastError) => void = () => undefined;

  constructor(base: Clock) {
    this.#base = base;
    this.death = new Promise((_, reject) => (this.#die = reject));
    this.death.catch(() => undefined);
    this.clock = {
      nowMs: () => base.nowMs() + this.skewMs,
      monotonicMs: () => base.monotonicMs(),
      sleep: (ms, options) => this.#sleep(ms, options?.signal),
      after: (ms, task) => this.#after(ms, task),
    };
  }

  get isDead(): boolean {
    return this.#dead;
  }

  /** How long the host's pause still lasts; 0 while it runs. */
  get stalledMs(): number {
    return Math.max(0, this.#pausedUntilMs - this.#base.nowMs());
  }

  kill(): void {
    this.#dead = true;
    this.#die(new HoldfastError("unavailable", "client: the connection was lost"));
  }

  pause(ms: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#base.nowMs() + ms);
  }

  /** Resolves while the host lives, and never once it is dead. */
  async alive(): Promise<void> {
    if (this.#dead) await new Promise<never>(() => undefined);
  }

  /** `work`, or the host's death, whichever is first. */
  answered<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.death]);
  }

  #after(ms: number, task: () => void): Timer {
    let pending: Timer;
    const arm = (spanMs: number): void => {
      pending = this.#base.after(spanMs, () => {
        if (this.#dead) return;
        if (this.stalledMs > 0) arm(this.stalledMs);
        else task();
      });
    };
    arm(ms);
    return { cancel: () => pending.cancel() };
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason);
      const onAbort = (): void => {
        timer.cancel();
        reject(signal?.reason);
      };
      const timer = this.#after(ms, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }
}
