/** Messages of several sources as one stream for one consumer; a source waits while too many are held. */

const HELD_MAX = 16;

/** A bounded queue with an end. */
export class MessageQueue<T> implements AsyncIterable<T> {
  readonly #held: T[] = [];
  #senders: (() => void)[] = [];
  #wake: () => void = () => undefined;
  #isEnded = false;
  #error: unknown;

  /** Adds a message; resolves when the source may go on. */
  push(message: T): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    this.#held.push(message);
    this.#wake();
    if (this.#held.length <= HELD_MAX) return Promise.resolve();
    return new Promise((resolve) => this.#senders.push(resolve));
  }

  /** Nothing comes any more; with an error the consumer gets it after what is held. */
  end(error?: unknown): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#error = error;
    this.#wake();
    for (const resolve of this.#senders.splice(0)) resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      const message = this.#held.shift();
      if (message !== undefined) {
        this.#senders.shift()?.();
        yield message;
      } else if (this.#isEnded) {
        if (this.#error instanceof Error) throw this.#error;
        return;
      } else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
