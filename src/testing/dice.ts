/** Choices from a seed. */

import { SeededRandom } from "./ports.ts";

/** Seeded choices. */
export class Dice extends SeededRandom {
  /** True in `perMille` of a thousand. */
  chance(perMille: number): boolean {
    return this.below(1000) < perMille;
  }

  /** A whole number, both ends included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** One of `items`, which must not be empty. */
  pick<T>(items: readonly [T, ...T[]]): T;
  pick<T>(items: readonly T[]): T | undefined;
  pick<T>(items: readonly T[]): T | undefined {
    return items[this.below(items.length)];
  }

  /** One of `items`, each as likely as its weight says. */
  weighted<T>(items: readonly (readonly [weight: number, item: T])[]): T {
    let left = this.below(items.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, item] of items) {
      if (left < weight) return item;
      left -= weight;
    }
    throw new Error("there is nothing to choose from");
  }

  /** A random source of its own, so that who draws from it disturbs nobody else. */
  branch(): Dice {
    return new Dice(this.next());
  }
}
