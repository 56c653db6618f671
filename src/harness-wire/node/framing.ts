/**
 * Frames on a byte stream: the length in four bytes, big-endian, then so many bytes.
 *
 * Invariants: bytes may arrive cut anywhere. A length beyond the bound is refused before anything of that frame is kept.
 */

import { HoldfastError } from "../../base/errors.ts";

/** The bytes before a frame. */
export const HEADER_BYTES = 4;

/** A frame with its length before it. */
export function framed(payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  bytes.writeUInt32BE(payload.length, 0);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  readonly #bytesMax: number;
  readonly #chunks: Buffer[] = [];
  #held = 0;
  /** The length of the frame that is being read; undefined while its header is. */
  #length: number | undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Whether the stream is between two frames. */
  get isBetween(): boolean {
    return this.#held === 0 && this.#length === undefined;
  }

  /** Takes bytes as they came; yields the frames that are whole. Throws RESOURCE_EXHAUSTED for a length beyond the bound. */
  *push(chunk: Uint8Array): Generator<Uint8Array, void, undefined> {
    this.#chunks.push(Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    this.#held += chunk.length;
    for (;;) {
      if (this.#length === undefined) {
        if (this.#held < HEADER_BYTES) return;
        this.#length = this.#take(HEADER_BYTES).readUInt32BE(0);
        if (this.#length > this.#bytesMax) {
          throw new HoldfastError("resource_exhausted", `frame: it has ${this.#length} bytes; at most ${this.#bytesMax} are taken`);
        }
      }
      if (this.#held < this.#length) return;
      const frame = this.#take(this.#length);
      this.#length = undefined;
      yield frame;
    }
  }

  #take(count: number): Buffer {
    this.#held -= count;
    const first = this.#chunks[0];
    if (count === 0 || first === undefined) return Buffer.alloc(0);
    if (first.length > count) {
      this.#chunks[0] = first.subarray(count);
      return first.subarray(0, count);
    }
    if (first.length === count) return this.#chunks.shift()!;
    return this.#gather(count);
  }

  #gather(count: number): Buffer {
    const whole = Buffer.allocUnsafe(count);
    let at = 0;
    let used = 0;
    for (const chunk of this.#chunks) {
      const part = chunk.length > count - at ? chunk.subarray(0, count - at) : chunk;
      whole.set(part, at);
      at += part.length;
      if (part.length < chunk.length) this.#chunks[used] = chunk.subarray(part.length);
      else used += 1;
      if (at === count) break;
    }
    this.#chunks.splice(0, used);
    return whole;
  }
}
