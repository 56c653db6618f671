/** What a fuzz throws: the same from the same seed. */

import { SeededRandom } from "../../src/testing/ports.ts";

export class Dice {
  readonly #random: SeededRandom;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
  }

  /** A whole number from 0 to `bound` − 1. */
  below(bound: number): number {
    return this.#random.below(bound);
  }

  one<Value>(...values: readonly Value[]): Value {
    return values[this.below(values.length)]!;
  }

  bytes(count: number): Uint8Array {
    return this.#random.bytes(count);
  }
}
