/**
 * How much goes into a transaction where the next one can be drafted while it is written.
 *
 * If writing takes less time than drafting what waits, half of it is written while the other half is drafted, and so on in turns.
 * If the disk is slower than that, all that waits goes into one transaction: two would cost its time twice.
 */

/** Below so many items a transaction is not worth halving. */
const HALVED_ITEMS_MIN = 32;
/** How much a new measurement counts against what was known before. */
const WEIGHT = 0.25;

/** Knows how long drafting and writing take. Times in milliseconds. */
export class Pace {
  #draftMs = 0;
  #writeMs = Number.POSITIVE_INFINITY;

  /** Drafting `items` items took `ms`. */
  drafted(items: number, ms: number): void {
    if (items > 0) this.#draftMs += WEIGHT * (ms / items - this.#draftMs);
  }

  /** A transaction was durable `ms` after it was handed to the writer. */
  written(ms: number): void {
    this.#writeMs = Number.isFinite(this.#writeMs) ? this.#writeMs + WEIGHT * (ms - this.#writeMs) : ms;
  }

  /** How many of `items` items that wait go into the next transaction. */
  share(items: number): number {
    const halved = items >= HALVED_ITEMS_MIN && this.#writeMs < items * this.#draftMs;
    return halved ? Math.ceil(items / 2) : items;
  }
}
