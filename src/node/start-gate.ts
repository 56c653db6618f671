/** Lets so many starts pass at once, in the order in which they came: a hundred at once would all be late. */

/** A gate with a fixed number of places. */
export class StartGate {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number) {
    this.#free = places;
  }

  /** Runs `task` once there is a place; settles as it does. A caller that gave up before its turn starts nothing. */
  async pass<T>(task: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      signal?.throwIfAborted();
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
