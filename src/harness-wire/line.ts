/**
 * The two ends of a line between a host and a harness. Who implements them moves frames and nothing else: standard streams, a gRPC
 * stream, a sandbox's door.
 *
 * Invariants:
 * - Frames arrive whole and in the order sent, or the line breaks with an error. There is no third way.
 * - A sender waits: `send` resolves when the line can take the next frame, so nothing grows without bound.
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HarnessFrame, HarnessFrameSchema, HostFrame, HostFrameSchema } from "../gen/holdfast/v1/harness_wire_pb.ts";

/** The version of the protocol that both ends speak. */
export const LINE_PROTOCOL = 1;

/** Frames as plain objects: what a sandbox without a protobuf library can make. */
export type HostFrameInit = MessageInitShape<typeof HostFrameSchema>;
export type HarnessFrameInit = MessageInitShape<typeof HarnessFrameSchema>;

/** The host's end. */
export interface HostLine extends AsyncDisposable {
  /** Resolves when the line can take the next frame. Rejects with UNAVAILABLE once the line is closed. */
  send(frame: HostFrameInit): Promise<void>;
  /**
   * What the harness sends, in order, for one consumer. Ends when the harness closed the line; throws a HoldfastError when it broke:
   * UNAVAILABLE for a peer that is gone, INVALID_ARGUMENT for bytes that are no frame, RESOURCE_EXHAUSTED for one that is too large.
   */
  readonly frames: AsyncIterable<HarnessFrame>;
}

/** The harness's end: it is given what the host sends by a call of `HarnessEnd.receive`. */
export interface HarnessLine {
  /** Resolves when the line can take the next frame. Rejects once the line is closed. */
  send(frame: HarnessFrameInit): Promise<void>;
}

/** What the harness's end is given; the same plain objects, whole. */
export type ReceivedFrame = HostFrame;
