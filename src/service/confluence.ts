/**
 * Several streams as one, in the order in which their items come. Streams may join while it flows.
 *
 * Invariants:
 * - A stream is asked for its next item when its last one was taken, so that as many items wait as there are streams, however slow the
 *   reader is.
 * - A reader that leaves lets go of every stream, of those too whose item it did not take.
 */

/** Streams that flow into one. */
export class Confluence<Item> implements Disposable {
  readonly #waiting: { readonly item: Item; readonly taken: () => void }[] = [];
  #flowing = 0;
  #failure: { readonly error: unknown } | undefined;
  #ring: () => void = () => undefined;
  #isLeft = false;

  /** Lets a stream join. One that has no item yet is not ended from here: whoever made it ends it by its own signal. */
  join(stream: AsyncIterable<Item>): void {
    this.#flowing += 1;
    void this.#pour(stream);
  }

  /** The next item; undefined once every stream has ended. Throws what a stream threw. */
  async next(): Promise<Item | undefined> {
    for (;;) {
      const first = this.#waiting.shift();
      if (first !== undefined) {
        first.taken();
        return first.item;
      }
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#flowing === 0) return undefined;
      await new Promise<void>((resolve) => (this.#ring = resolve));
    }
  }

  /** Takes nothing more. */
  [Symbol.dispose](): void {
    this.#isLeft = true;
    for (const { taken } of this.#waiting.splice(0)) taken();
  }

  async #pour(stream: AsyncIterable<Item>): Promise<void> {
    try {
      for await (const item of stream) {
        if (this.#isLeft) return;
        await new Promise<void>((taken) => {
          this.#waiting.push({ item, taken });
          this.#ring();
        });
        if (this.#isLeft) return;
      }
    } catch (error) {
      this.#failure ??= { error };
    } finally {
      this.#flowing -= 1;
      this.#ring();
    }
  }
}
