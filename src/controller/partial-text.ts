/**
 * A text that grows chunk by chunk, as far as it had come at one moment. Pure.
 *
 * Invariants:
 * - What comes later is not in it, though all moments of a text share its chunks: it is kept once, however often it is looked at.
 * - Taking the end of it costs what is taken, and not what stands before.
 */

export class PartialText {
  /** Those of later moments are behind the first `#count`. */
  readonly #chunks: string[];
  readonly #count: number;
  /** In UTF-16 units. */
  readonly length: number;

  private constructor(chunks: string[], count: number, length: number) {
    this.#chunks = chunks;
    this.#count = count;
    this.length = length;
  }

  /** A text of one chunk. */
  static of(chunk: string): PartialText {
    return new PartialText([chunk], 1, chunk.length);
  }

  /** The text with one more chunk. */
  with(chunk: string): PartialText {
    const isNewest = this.#chunks.length === this.#count;
    const chunks = isNewest ? this.#chunks : this.#chunks.slice(0, this.#count);
    chunks.push(chunk);
    return new PartialText(chunks, this.#count + 1, this.length + chunk.length);
  }

  /** What stands behind the first `units`; of that the first `most`. */
  from(units: number, most: number = Number.POSITIVE_INFINITY): string {
    let first = this.#count;
    let start = this.length;
    while (start > units && first > 0) start -= this.#chunks[--first]?.length ?? 0;
    let text = "";
    for (let at = first; at < this.#count && start + text.length < units + most; at++) text += this.#chunks[at] ?? "";
    return text.slice(units - start, units - start + most);
  }

  toString(): string {
    return this.from(0);
  }
}
