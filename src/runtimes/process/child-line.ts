/** A line to a child that knows more than the line: what the child ended by, and that the host has given an exchange up. */

import { HoldfastError } from "../../base/errors.ts";
import type { HarnessFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import type { FrameExtras, HostFrameInit, HostLine } from "../../harness-wire/index.ts";

/** What a line is told by who holds the child. */
export interface ChildLineOptions {
  /** Why nothing comes any more, once that is known; undefined for a child that lives on without its line. */
  readonly whyEnded: () => Promise<HoldfastError | undefined>;
  /** The host does not wait any longer for an exchange: whatever the child still does in it belongs to no turn. */
  readonly onGivenUp: () => void;
}

/** `line`, with the reason for its end. */
export function childLine(line: HostLine, options: ChildLineOptions): HostLine {
  return {
    takesEncodedEvents: line.takesEncodedEvents,
    send: (frame, extras) => sendOver(line, frame, extras, options),
    frames: framesOf(line, options),
    limitFrames: (bytesMax) => line.limitFrames?.(bytesMax),
    [Symbol.asyncDispose]: () => Promise.resolve(line[Symbol.asyncDispose]()),
  };
}

function sendOver(line: HostLine, frame: HostFrameInit, extras: FrameExtras | undefined, options: ChildLineOptions): Promise<void> {
  // A host ends an exchange only where it gives it up; one that ends in order is ended by the harness.
  if (frame.frame?.case === "end") options.onGivenUp();
  const sent = line.send(frame, extras);
  return sent.catch(async (error: unknown) => {
    throw (await options.whyEnded()) ?? error;
  });
}

async function* framesOf(line: HostLine, { whyEnded }: ChildLineOptions): AsyncGenerator<HarnessFrame, void, undefined> {
  try {
    yield* line.frames;
  } catch (error) {
    if (error instanceof HoldfastError && error.code !== "unavailable") throw error;
    throw (await whyEnded()) ?? error;
  }
  const why = await whyEnded();
  if (why !== undefined) throw why;
}
