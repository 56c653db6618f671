/**
 * A line in memory for tests: frames pass as bytes, in order, and each direction holds a bounded number of them. Either end can be
 * played by hand.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import { HarnessFrameSchema, HostFrameSchema, type HarnessFrame, type HostFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import {
  encodeHostFrame,
  HarnessEnd,
  type HarnessEndOptions,
  type HarnessFrameInit,
  type HarnessLine,
  type HostLine,
} from "../../harness-wire/index.ts";
import type { Harness } from "../../spi/index.ts";

/** The harness's end of a line in memory, to be played by hand. */
export interface PeerEnd extends HarnessLine {
  /** Called with each frame of the host, at the next turn of the microtask queue. */
  onFrame: (frame: HostFrame) => void;
  /** Closes the line as a harness does that ends. */
  close(): void;
  /** Breaks the line with what a line throws. */
  break(error: HoldfastError): void;
  /** Resolves once the host has closed the line. */
  readonly closed: Promise<void>;
  /** Frames that were sent and that the host has not read yet. */
  readonly unread: number;
}

/** Both ends of a line. */
export interface MemoryLine {
  readonly host: HostLine;
  readonly peer: PeerEnd;
}

/** A new line; a sender waits while more than `heldMax` frames are unread. */
export function memoryLine({ heldMax = 16 }: { readonly heldMax?: number } = {}): MemoryLine {
  const queue = new FrameQueue(heldMax);
  const closed = Promise.withResolvers<void>();
  let harnessBytesMax = Number.POSITIVE_INFINITY;
  let hostBytesMax = Number.POSITIVE_INFINITY;
  let isOpen = true;
  const close = (error?: HoldfastError): void => {
    isOpen = false;
    queue.end(error);
    closed.resolve();
  };
  const peer: PeerEnd = {
    onFrame: () => undefined,
    send: (init) => {
      const bytes = toBinary(HarnessFrameSchema, create(HarnessFrameSchema, init));
      if (bytes.length > harnessBytesMax) throw tooLarge(bytes.length);
      return isOpen ? queue.push(fromBinary(HarnessFrameSchema, bytes)) : Promise.reject(closedError());
    },
    limitFrames: (bytesMax) => void (harnessBytesMax = bytesMax),
    close: () => close(),
    break: close,
    closed: closed.promise,
    get unread() {
      return queue.length;
    },
  };
  const host: HostLine = {
    takesEncodedEvents: true,
    send: (init, extras) => {
      const bytes = encodeHostFrame(init, extras?.events);
      if (bytes.length > hostBytesMax) throw tooLarge(bytes.length);
      if (!isOpen) return Promise.reject(closedError());
      const frame = fromBinary(HostFrameSchema, bytes);
      queueMicrotask(() => peer.onFrame(frame));
      return Promise.resolve();
    },
    limitFrames: (bytesMax) => void (hostBytesMax = bytesMax),
    frames: queue,
    [Symbol.asyncDispose]: async () => close(),
  };
  return { host, peer };
}

/** A line to a harness in this process. */
export function memoryLineTo(harness: Harness, options: HarnessEndOptions & { readonly heldMax?: number } = {}): MemoryLine {
  const line = memoryLine(options);
  const end = new HarnessEnd(harness, line.peer, options);
  line.peer.onFrame = (frame) => end.receive(frame);
  void line.peer.closed.then(() => end.close());
  return line;
}

/** A frame of the harness for a peer that is played by hand. */
export function peerFrame(exchange: number, frame: NonNullable<HarnessFrameInit["frame"]>): HarnessFrameInit {
  return { exchange, frame };
}

class FrameQueue implements AsyncIterable<HarnessFrame> {
  readonly #heldMax: number;
  readonly #frames: HarnessFrame[] = [];
  readonly #senders: (() => void)[] = [];
  #wake: () => void = () => undefined;
  #isEnded = false;
  #error: HoldfastError | undefined;

  constructor(heldMax: number) {
    this.#heldMax = heldMax;
  }

  get length(): number {
    return this.#frames.length;
  }

  async push(frame: HarnessFrame): Promise<void> {
    this.#frames.push(frame);
    this.#wake();
    if (this.#frames.length > this.#heldMax) await new Promise<void>((resolve) => this.#senders.push(resolve));
  }

  end(error: HoldfastError | undefined): void {
    this.#isEnded = true;
    this.#error ??= error;
    this.#wake();
    for (const resolve of this.#senders.splice(0)) resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<HarnessFrame, void, undefined> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame !== undefined) {
        this.#senders.shift()?.();
        yield frame;
      } else if (this.#error !== undefined) throw this.#error;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

function tooLarge(bytes: number): HoldfastError {
  return new HoldfastError("resource_exhausted", `frame: it has ${bytes} bytes, more than the other end takes`);
}

function closedError(): HoldfastError {
  return new HoldfastError("unavailable", "the line is closed");
}
