/**
 * Simulated time. It moves only when it is told to, one timer after the other, and between two timers everything that can go on does
 * go on. So what happens never depends on how fast the machine is.
 */

import { VirtualClock } from "../ports.ts";

/** The time of one world. */
export class SimulatedTime {
  readonly clock = new VirtualClock();
  readonly #isBusy: () => boolean;

  /** `isBusy` says whether a store is still at work on something that was asked of it. */
  constructor(isBusy: () => boolean = () => false) {
    this.#isBusy = isBusy;
  }

  /** Resolves once nothing can go on without time moving: no microtask is left, and no store is at work. */
  async settle(): Promise<void> {
    do {
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.#isBusy());
  }

  /** Moves time forward by `ms`. */
  async elapse(ms: number): Promise<void> {
    const { clock } = this;
    const endMs = clock.nowMs() + ms;
    await this.settle();
    for (let dueMs = clock.nextDueMs; dueMs !== undefined && dueMs <= endMs; dueMs = clock.nextDueMs) {
      clock.advance(Math.max(0, dueMs - clock.nowMs()));
      await this.settle();
    }
    clock.advance(endMs - clock.nowMs());
    await this.settle();
  }
}
