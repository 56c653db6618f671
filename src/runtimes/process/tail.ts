/** The last bytes of a stream of text. It holds little more than it keeps, however much flows by. */

/** Keeps the end of what is pushed. */
export class Tail {
  readonly #bytesMax: number;
  #chunks: Buffer[] = [];
  #held = 0;
  #dropped = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  push(chunk: Buffer): void {
    const kept = chunk.length > this.#bytesMax ? chunk.subarray(chunk.length - this.#bytesMax) : chunk;
    if (kept.length < chunk.length) this.#dropped = true;
    this.#chunks.push(kept);
    this.#held += kept.length;
    // Small writes are gathered now and then, so that the list does not grow with their number.
    if (this.#held > 2 * this.#bytesMax || this.#chunks.length > 256) this.#gather();
  }

  /** The end of the text. A line that was cut is left out where a whole one follows it. */
  text(): string {
    this.#gather();
    const text = Buffer.concat(this.#chunks).toString("utf8");
    if (!this.#dropped) return text;
    const line = text.indexOf("\n");
    return line < 0 || line === text.length - 1 ? text : text.slice(line + 1);
  }

  /** The same, and nothing of it is held any more. */
  take(): string {
    const text = this.text();
    this.#chunks = [];
    this.#held = 0;
    this.#dropped = false;
    return text;
  }

  #gather(): void {
    const all = Buffer.concat(this.#chunks);
    const surplus = Math.max(0, all.length - this.#bytesMax);
    if (surplus > 0) this.#dropped = true;
    // A copy: a view would keep the chunks alive that it was cut from.
    this.#chunks = [Buffer.from(all.subarray(surplus))];
    this.#held = all.length - surplus;
  }
}
