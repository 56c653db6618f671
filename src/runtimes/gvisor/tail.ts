/** The last bytes of what a sandbox says. It holds little more than it keeps and is read at a bounded pace, however much flows by. */

import type { Readable } from "node:stream";
import type { Clock } from "../../base/ports.ts";

/** What is read at most: 20 MiB a second. */
const WINDOW_MS = 50;
const BYTES_PER_WINDOW = 1024 * 1024;

/** Reads a stream to its end and keeps the end of it. */
export class Tail {
  readonly #bytesMax: number;
  readonly #stream: Readable;
  readonly #clock: Clock;
  #kept = Buffer.alloc(0);
  #budget = BYTES_PER_WINDOW;
  #isWindowOpen = false;

  constructor(stream: Readable, bytesMax: number, clock: Clock) {
    this.#stream = stream;
    this.#bytesMax = bytesMax;
    this.#clock = clock;
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => this.#push(chunk));
  }

  /** The end of the text, once nothing more comes or `waitMs` have passed. */
  async text(waitMs: number): Promise<string> {
    if (!this.#stream.closed) {
      const closed = Promise.withResolvers<void>();
      const timer = this.#clock.after(waitMs, closed.resolve);
      this.#stream.once("close", closed.resolve);
      await closed.promise;
      timer.cancel();
      this.#stream.destroy();
    }
    return this.#kept.toString("utf8");
  }

  #push(chunk: Buffer): void {
    const both = Buffer.concat([this.#kept, chunk.subarray(Math.max(0, chunk.length - this.#bytesMax))]);
    this.#kept = Buffer.from(both.subarray(Math.max(0, both.length - this.#bytesMax)));
    this.#budget -= chunk.length;
    if (!this.#isWindowOpen) {
      this.#isWindowOpen = true;
      this.#clock.after(WINDOW_MS, () => {
        this.#isWindowOpen = false;
        this.#budget = BYTES_PER_WINDOW;
        this.#stream.resume();
      });
    }
    if (this.#budget <= 0) this.#stream.pause();
  }
}
