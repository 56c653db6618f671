/** The last bytes of what a program says. They hold little more than they keep and are read at a bounded pace, however much flows by. */

import type { Readable } from "node:stream";
import type { Clock } from "../base/index.ts";

/** What is read of one stream at most: 20 MiB a second. */
const WINDOW_MS = 50;
const BYTES_PER_WINDOW = 1024 * 1024;

/** What a tail is made of. */
export interface TailOptions {
  readonly bytesMax: number;
  readonly clock: Clock;
}

/** Keeps the end of what streams of text say. */
export class Tail {
  readonly #bytesMax: number;
  readonly #clock: Clock;
  readonly #streams: Readable[] = [];
  #chunks: Buffer[] = [];
  #held = 0;
  #dropped = false;

  constructor({ bytesMax, clock }: TailOptions) {
    this.#bytesMax = bytesMax;
    this.#clock = clock;
  }

  /** Reads a stream to its end. */
  follow(stream: Readable): void {
    this.#streams.push(stream);
    let budget = BYTES_PER_WINDOW;
    let isWindowOpen = false;
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => {
      this.push(chunk);
      budget -= chunk.length;
      if (!isWindowOpen) {
        isWindowOpen = true;
        this.#clock.after(WINDOW_MS, () => {
          isWindowOpen = false;
          budget = BYTES_PER_WINDOW;
          stream.resume();
        });
      }
      if (budget <= 0) stream.pause();
    });
  }

  push(chunk: Buffer): void {
    const kept = chunk.length > this.#bytesMax ? chunk.subarray(chunk.length - this.#bytesMax) : chunk;
    if (kept.length < chunk.length) this.#dropped = true;
    this.#chunks.push(kept);
    this.#held += kept.length;
    // Small writes are gathered now and then, so that the list does not grow with their number.
    if (this.#held > 2 * this.#bytesMax || this.#chunks.length > 256) this.#gather();
  }

  /** The end of the text so far. A line that was cut is left out where a whole one follows it. */
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

  /** The end of the whole text: once nothing more comes, or `waitMs` have passed. The streams are closed then. */
  async lastText(waitMs: number): Promise<string> {
    const open = this.#streams.filter((stream) => !stream.closed);
    if (open.length > 0) {
      const waited = Promise.withResolvers<void>();
      const timer = this.#clock.after(waitMs, waited.resolve);
      const closed = Promise.all(open.map((stream) => new Promise<void>((resolve) => stream.once("close", resolve))));
      await Promise.race([closed, waited.promise]);
      timer.cancel();
      for (const stream of open) stream.destroy();
    }
    return this.text();
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
