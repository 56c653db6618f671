/** How many calls are open at one provider at a time. Those that find no slot wait in their order. */

import { abortErrorOf } from "./fault.ts";

/** The slots of one provider. */
export class Slots {
  readonly #waiting = new Set<() => void>();
  #free: number;

  /** `count`: calls that may be open at once. */
  constructor(count: number) {
    this.#free = count;
  }

  /** Takes a slot, as soon as one is free; returns what gives it back, once. Rejects with the signal's error when it fires first. */
  async take(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw abortErrorOf(signal);
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    let isTaken = true;
    return () => {
      if (isTaken) this.#giveBack();
      isTaken = false;
    };
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.delete(wake);
        reject(abortErrorOf(signal));
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** A slot goes from hand to hand: it is not free in between, so nobody can step in front of who waits. */
  #giveBack(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
