/** Frames of a guest that wait for the host, for one consumer. */

import { fromBinary } from "@bufbuild/protobuf";
import { HarnessFrameSchema, type HarnessFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";

/** Its length is bounded by whoever fills it. */
export class FrameQueue implements AsyncIterable<HarnessFrame> {
  frames = 0;
  chars = 0;
  readonly #onTaken: (chars: number) => void;
  #waiting: { readonly bytes: Uint8Array; readonly chars: number }[] = [];
  #end: { readonly fault: Error | undefined } | undefined;
  #wake: (() => void) | undefined;

  /** `onTaken` is called for each frame that the consumer took, with its length as text. */
  constructor(onTaken: (chars: number) => void) {
    this.#onTaken = onTaken;
  }

  push(bytes: Uint8Array, chars: number): void {
    if (this.#end !== undefined) return;
    this.frames++;
    this.chars += chars;
    this.#waiting.push({ bytes, chars });
    this.#wake?.();
  }

  /** No more will come; a fault is thrown to the consumer once it has taken what is there. */
  end(fault: Error | undefined): void {
    this.#end ??= { fault };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<HarnessFrame> {
    for (;;) {
      const batch = this.#waiting;
      this.#waiting = [];
      for (const { bytes, chars } of batch) {
        this.frames--;
        this.chars -= chars;
        yield fromBinary(HarnessFrameSchema, bytes);
        this.#onTaken(chars);
      }
      if (this.#waiting.length > 0) continue;
      if (this.#end !== undefined) {
        if (this.#end.fault !== undefined) throw this.#end.fault;
        return;
      }
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
  }
}
