/** Things that take their time and are let through in the order in which they were begun. */

/** A place in the order. */
export interface Place {
  /** Resolves once everything with an earlier place is through. */
  readonly turn: Promise<void>;
  /** Lets the next one through, whatever came of this one. */
  readonly pass: () => void;
}

/** One after the other. */
export class InOrder {
  #last: Promise<void> = Promise.resolve();

  /** The next place. Whoever takes it must pass. */
  place(): Place {
    const turn = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    return { turn, pass: resolve };
  }
}
