/** The frames of gRPC messages as they pass: which message is too large, and whether one is under way. */

/** A byte that says whether it is compressed, and four of its length. */
const HEAD_BYTES = 5;

/** Follows one stream of messages, however it is cut into chunks. */
export class FrameMeter {
  readonly #bytesMax: number;
  #headBytes = 0;
  #length = 0;
  #remaining = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Whether a message has begun and is not whole. */
  get isPartial(): boolean {
    return this.#headBytes > 0;
  }

  /** Counts a chunk. `oversize`: a message is announced that is too large. `completed`: one became whole. */
  push(chunk: Uint8Array): { readonly oversize: boolean; readonly completed: boolean } {
    let completed = false;
    for (let at = 0; at < chunk.length;) {
      if (this.#headBytes < HEAD_BYTES) {
        if (this.#headBytes > 0) this.#length = this.#length * 256 + (chunk[at] ?? 0);
        this.#headBytes++;
        at++;
        if (this.#headBytes < HEAD_BYTES) continue;
        if (this.#length > this.#bytesMax) return { oversize: true, completed };
        this.#remaining = this.#length;
      } else {
        const taken = Math.min(this.#remaining, chunk.length - at);
        this.#remaining -= taken;
        at += taken;
      }
      if (this.#remaining > 0) continue;
      completed = true;
      this.#headBytes = 0;
      this.#length = 0;
    }
    return { oversize: false, completed };
  }
}
