/**
 * Writes to a stream that may be full or closed.
 *
 * Invariants: chunks go out in the order of `put`. A writer that waits is let go when the stream has taken what is ahead of it, or
 * rejected when the stream is closed.
 */

import type { Writable } from "node:stream";
import { HoldfastError } from "../../base/errors.ts";

const DONE = Promise.resolve();

/** The writing side of a line. */
export class Outlet {
  readonly #stream: Writable;
  #bytesMax = Number.POSITIVE_INFINITY;
  #isClosed = false;
  #waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];

  constructor(stream: Writable) {
    this.#stream = stream;
    stream.on("drain", () => {
      for (const { resolve } of this.#waiting.splice(0)) resolve();
    });
    stream.on("error", () => this.close());
    stream.on("close", () => this.close());
  }

  /** The most bytes that a frame may have from now on. */
  limit(bytesMax: number): void {
    this.#bytesMax = bytesMax;
  }

  /** Throws RESOURCE_EXHAUSTED at once for a frame that is too large. */
  check(payload: Uint8Array): void {
    if (payload.length <= this.#bytesMax) return;
    throw new HoldfastError("resource_exhausted", `frame: it has ${payload.length} bytes; the other end takes at most ${this.#bytesMax}`);
  }

  /** Writes; resolves when the stream can take more. */
  put(chunk: Uint8Array): Promise<void> {
    if (this.#isClosed || this.#stream.writableEnded || this.#stream.destroyed) return Promise.reject(closedError());
    if (this.#stream.write(chunk)) return DONE;
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  /** Ends the stream after what was written. */
  end(): void {
    if (!this.#stream.writableEnded && !this.#stream.destroyed) this.#stream.end();
    this.close();
  }

  /** Nothing can be written any more. */
  close(): void {
    this.#isClosed = true;
    for (const { reject } of this.#waiting.splice(0)) reject(closedError());
  }
}

function closedError(): HoldfastError {
  return new HoldfastError("unavailable", "the line is closed");
}
