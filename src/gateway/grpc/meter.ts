/** The frames of gRPC messages as they pass: which message is none or is too large, and whether one is under way. */

/** A byte that says whether it is compressed, and four of its length. */
const HEAD_BYTES = 5;

/** What is wrong with a message that has begun: it is announced as too large, or its first byte says nothing here. */
export type FrameFault = "oversize" | "flag";

export interface FrameMeterOptions {
  readonly bytesMax: number;
  /** Whether the call has said how its messages are compressed: without that, none may be. */
  readonly mayBeCompressed: boolean;
}

/** Follows one stream of messages, however it is cut into chunks. */
export class FrameMeter {
  readonly #bytesMax: number;
  readonly #flagMax: number;
  #headBytes = 0;
  #length = 0;
  #remaining = 0;

  constructor({ bytesMax, mayBeCompressed }: FrameMeterOptions) {
    this.#bytesMax = bytesMax;
    this.#flagMax = mayBeCompressed ? 1 : 0;
  }

  /** Whether a message has begun and is not whole. */
  get isPartial(): boolean {
    return this.#headBytes > 0;
  }

  /** Counts a chunk, up to what is wrong in it. `completed`: a message became whole. */
  push(chunk: Uint8Array): { readonly fault?: FrameFault; readonly completed: boolean } {
    let completed = false;
    for (let at = 0; at < chunk.length;) {
      if (this.#headBytes < HEAD_BYTES) {
        const byte = chunk[at] ?? 0;
        if (this.#headBytes > 0) this.#length = this.#length * 256 + byte;
        else if (byte > this.#flagMax) return { fault: "flag", completed };
        this.#headBytes++;
        at++;
        if (this.#headBytes < HEAD_BYTES) continue;
        if (this.#length > this.#bytesMax) return { fault: "oversize", completed };
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
    return { completed };
  }
}
