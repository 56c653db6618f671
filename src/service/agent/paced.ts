/**
 * Updates of one kind at a rate: so many at most in any span of time, and the last one never lost. One that is like the one before it is none.
 * While there is nothing to say no timer runs.
 */

import type { Clock, Timer } from "../../base/ports.ts";

export interface PacedOptions<Update> {
  readonly clock: Clock;
  readonly max: number;
  readonly spanMs: number;
  /** What tells an update from another. */
  readonly keyOf: (update: Update) => string;
  readonly emit: (update: Update) => void;
}

export class Paced<Update> {
  readonly #options: PacedOptions<Update>;
  /** When the last ones went out, the oldest first. */
  readonly #timesMs: number[] = [];
  #lastKey: string | undefined;
  #waiting: Update | undefined;
  #timer: Timer | undefined;

  /** `last` is what the receiver takes for granted. */
  constructor(options: PacedOptions<Update>, last?: Update) {
    this.#options = options;
    this.#lastKey = last === undefined ? undefined : options.keyOf(last);
  }

  /** It is so now. */
  set(update: Update): void {
    this.#waiting = this.#options.keyOf(update) === this.#lastKey ? undefined : update;
    if (this.#waiting === undefined) return this.stop();
    this.#flush();
  }

  /** What waits does not go out. */
  stop(): void {
    this.#waiting = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #flush(): void {
    const { clock, max, spanMs, emit, keyOf } = this.#options;
    const update = this.#waiting;
    if (update === undefined) return;
    const nowMs = clock.monotonicMs();
    while (this.#timesMs[0] !== undefined && nowMs - this.#timesMs[0] >= spanMs) this.#timesMs.shift();
    const [oldestMs] = this.#timesMs;
    if (oldestMs !== undefined && this.#timesMs.length >= max) {
      this.#timer ??= clock.after(oldestMs + spanMs - nowMs, () => {
        this.#timer = undefined;
        this.#flush();
      });
      return;
    }
    this.stop();
    this.#timesMs.push(nowMs);
    this.#lastKey = keyOf(update);
    emit(update);
  }
}
