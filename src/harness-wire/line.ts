/**
 * The two ends of a line between a host and a harness. Who implements them moves frames and nothing else: standard streams, a gRPC
 * stream, a sandbox's door.
 *
 * Invariants:
 * - Frames arrive whole and in the order in which `send` was called, or the line breaks with an error. There is no third way.
 * - A sender waits: `send` resolves when the line can take the next frame, so nothing grows without bound.
 * - `send` throws at once, and nothing was sent, for a frame that is larger than the peer takes; the line goes on. What it was given
 *   may be changed once `send` has returned.
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HarnessFrame, HarnessFrameSchema, HostFrame, HostFrameSchema } from "../gen/holdfast/v1/harness_wire_pb.ts";

/** The version of the protocol that both ends speak. */
export const LINE_PROTOCOL = 1;

/** Frames as plain objects: what a sandbox without a protobuf library can make. */
export type HostFrameInit = MessageInitShape<typeof HostFrameSchema>;
export type HarnessFrameInit = MessageInitShape<typeof HarnessFrameSchema>;

/** Where a harness that speaks nothing but the contract finds what the contract has no frame for. */
export interface HostGrant {
  /** The address of the host's HarnessHost service. */
  readonly address: string;
  /** Good for one execution, while it runs. */
  readonly credential: string;
}

/** What goes with a frame. */
export interface FrameExtras {
  /** Encoded events that belong into the frame's list of events, for a line that takes them so. */
  readonly events?: readonly Uint8Array[] | undefined;
  /** With `open`, for a line that speaks the contract. */
  readonly grant?: HostGrant | undefined;
}

/** The host's end. */
export interface HostLine extends AsyncDisposable {
  /** True where events of a history are taken encoded (`FrameExtras.events`), so that each is encoded once. */
  readonly takesEncodedEvents?: boolean | undefined;
  /** Resolves when the line can take the next frame. Rejects with UNAVAILABLE once the line is closed. */
  send(frame: HostFrameInit, extras?: FrameExtras): Promise<void>;
  /**
   * What the harness sends, in order, for one consumer. Ends when the harness closed the line; throws a HoldfastError when it broke:
   * UNAVAILABLE for a peer that is gone, INVALID_ARGUMENT for bytes that are no frame, RESOURCE_EXHAUSTED for one that is too large.
   */
  readonly frames: AsyncIterable<HarnessFrame>;
  /** The most bytes that a frame to the harness may have from now on. */
  limitFrames?(bytesMax: number): void;
}

/** The harness's end: what the host sends reaches it by a call of `HarnessEnd.receive`. */
export interface HarnessLine {
  /** Resolves when the line can take the next frame. Rejects once the line is closed. */
  send(frame: HarnessFrameInit): Promise<void>;
  /** The most bytes that a frame to the host may have from now on. */
  limitFrames?(bytesMax: number): void;
}

/** What the harness's end is given; the same plain objects, whole. */
export type ReceivedFrame = HostFrame;
