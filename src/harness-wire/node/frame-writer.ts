/** Writes frames to a byte stream. All frames of one turn of the event loop go out in one write; there is no timer. */

import type { Writable } from "node:stream";
import { framed } from "./framing.ts";
import { Outlet } from "./outlet.ts";

/** The writing side of a line over a byte stream. */
export class FrameWriter extends Outlet {
  readonly #corked: Writable;
  #isCorked = false;

  constructor(stream: Writable) {
    super(stream);
    this.#corked = stream;
  }

  /** Sends a frame; throws RESOURCE_EXHAUSTED at once for one that is too large. */
  write(payload: Uint8Array): Promise<void> {
    this.check(payload);
    if (!this.#isCorked) {
      this.#isCorked = true;
      this.#corked.cork();
      process.nextTick(() => {
        this.#isCorked = false;
        this.#corked.uncork();
      });
    }
    return this.put(framed(payload));
  }
}
