/** Lines over two byte streams: a child's standard streams, a socket. */

import type { Readable, Writable } from "node:stream";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import { HarnessFrameSchema, HostFrameSchema, type HarnessFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import type { Harness } from "../../spi/harness.ts";
import {
  encodeHostFrame,
  HarnessEnd,
  HOST_FRAME_BYTES_MAX,
  WIRE_LIMITS,
  type HarnessEndOptions,
  type HarnessLine,
  type HostLine,
} from "../index.ts";
import { FrameReader } from "./framing.ts";
import { FrameWriter } from "./frame-writer.ts";

/** The two directions of a line. */
export interface StreamPair {
  /** What the other end sends. */
  readonly readable: Readable;
  /** What this end sends. */
  readonly writable: Writable;
}

/** The host's end over streams. Disposing of it ends the writable and lets go of the readable. */
export function hostLineOver({ readable, writable }: StreamPair, options: { readonly frameBytesMax?: number } = {}): HostLine {
  const writer = new FrameWriter(writable);
  readable.on("error", () => undefined);
  return {
    takesEncodedEvents: true,
    send: (frame, extras) => writer.write(encodeHostFrame(frame, extras?.events)),
    frames: harnessFrames(readable, options.frameBytesMax ?? WIRE_LIMITS.frameBytesMax),
    limitFrames: (bytesMax) => writer.limit(bytesMax),
    [Symbol.asyncDispose]: async () => {
      writer.end();
      readable.destroy();
    },
  };
}

async function* harnessFrames(readable: Readable, bytesMax: number): AsyncGenerator<HarnessFrame, void, undefined> {
  const reader = new FrameReader(bytesMax);
  for await (const chunk of chunksOf(readable)) {
    for (const bytes of reader.push(chunk)) yield harnessFrameOf(bytes);
  }
  if (!reader.isBetween) throw new HoldfastError("unavailable", "harness: the line to it was closed within a frame");
}

async function* chunksOf(readable: Readable): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of readable) yield chunk as Uint8Array;
  } catch (error) {
    throw new HoldfastError("unavailable", "harness: the line to it was closed; its turn is interrupted and can be resumed", {
      cause: error,
    });
  }
}

function harnessFrameOf(bytes: Uint8Array): HarnessFrame {
  try {
    return fromBinary(HarnessFrameSchema, bytes);
  } catch (error) {
    throw new HoldfastError("invalid_argument", "harness: it sent bytes that are no frame", { cause: error });
  }
}

/** A harness that is served over streams. */
export interface ServedLine {
  /** Resolves once the host has closed the line, or the line broke. Never rejects. */
  readonly closed: Promise<void>;
  readonly end: HarnessEnd;
  /** Closes the line: what runs on it is told to stop. */
  close(): void;
}

/** Serves a harness to the host at the other end of two streams. */
export function serveLineOver({ readable, writable }: StreamPair, harness: Harness, options: HarnessEndOptions = {}): ServedLine {
  const writer = new FrameWriter(writable);
  const line: HarnessLine = {
    send: (frame) => writer.write(toBinary(HarnessFrameSchema, create(HarnessFrameSchema, frame))),
    limitFrames: (bytesMax) => writer.limit(bytesMax),
  };
  const end = new HarnessEnd(harness, line, options);
  const reader = new FrameReader(options.frameBytesMax ?? HOST_FRAME_BYTES_MAX);
  const closed = Promise.withResolvers<void>();
  const close = (): void => {
    end.close();
    writer.end();
    readable.destroy();
    closed.resolve();
  };
  readable.on("data", (chunk: Uint8Array) => {
    try {
      for (const bytes of reader.push(chunk)) end.receive(fromBinary(HostFrameSchema, bytes));
    } catch {
      // A host that sends what is no frame is no host.
      close();
    }
  });
  readable.on("end", close);
  readable.on("close", close);
  readable.on("error", close);
  return { closed: closed.promise, end, close };
}
