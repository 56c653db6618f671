/** The host's end of a line over one gRPC stream of `holdfast.v1.HarnessWire`. */

import { fromBinary } from "@bufbuild/protobuf";
import { Metadata, status as GrpcStatus, type Client } from "@grpc/grpc-js";
import { HoldfastError } from "../../base/errors.ts";
import { HarnessFrameSchema, HarnessWire, type HarnessFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { asBuffer, isServiceError, pathOf } from "../../grpc/index.ts";
import { encodeHostFrame, type HostLine } from "../index.ts";
import { Outlet } from "./outlet.ts";

/** Opens a line on a channel, which is the line's from now on. */
export function grpcHostLine(client: Client, metadata = new Metadata()): HostLine {
  const call = client.makeBidiStreamRequest<Uint8Array, Uint8Array>(
    pathOf(HarnessWire.method.line),
    asBuffer,
    (bytes) => bytes,
    metadata,
    {},
  );
  const outlet = new Outlet(call);
  return {
    takesEncodedEvents: true,
    send: (frame, extras) => {
      const bytes = encodeHostFrame(frame, extras?.events);
      outlet.check(bytes);
      return outlet.put(bytes);
    },
    frames: framesOf(call),
    limitFrames: (bytesMax) => outlet.limit(bytesMax),
    [Symbol.asyncDispose]: async () => {
      outlet.close();
      call.cancel();
      client.close();
    },
  };
}

async function* framesOf(call: AsyncIterable<Uint8Array>): AsyncGenerator<HarnessFrame, void, undefined> {
  try {
    for await (const bytes of call) yield frameOf(bytes);
  } catch (error) {
    throw lineErrorOf(error);
  }
}

function frameOf(bytes: Uint8Array): HarnessFrame {
  try {
    return fromBinary(HarnessFrameSchema, bytes);
  } catch (error) {
    throw new HoldfastError("invalid_argument", "harness: it sent bytes that are no frame", { cause: error });
  }
}

/** What a stream to a harness broke with: a message that is too large is the harness's fault, everything else a lost peer. */
export function lineErrorOf(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  if (isServiceError(error) && error.code === GrpcStatus.RESOURCE_EXHAUSTED) {
    return new HoldfastError("resource_exhausted", "harness: it sent a message that is larger than the host takes", { cause: error });
  }
  return new HoldfastError("unavailable", "harness: the line to it was closed; its turn is interrupted and can be resumed", {
    cause: error,
  });
}
