/** What the exchanges of one line have in common at the host's end. */

import type { Clock } from "../base/ports.ts";
import type { HarnessFrame } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { FrameExtras, HostFrameInit } from "./line.ts";
import type { WireLimits } from "./limits.ts";

/** The body of a host's frame. */
export type HostFrameBody = NonNullable<HostFrameInit["frame"]>;

/** A line as one exchange sees it. */
export interface ExchangeContext {
  readonly clock: Clock;
  readonly limits: WireLimits;
  readonly encodesEvents: boolean;
  /** Throws at once for a frame that is too large; rejects when the line is closed. */
  send(body: HostFrameBody, extras?: FrameExtras): Promise<void>;
  /** The exchange is over: its number is free of meaning from now on. */
  release(): void;
}

/** One exchange. */
export interface HostExchange {
  /** Takes a frame; a promise means that the line is not to be read until it resolves. Throws the rule of the line that was broken. */
  receive(frame: HarnessFrame["frame"]): Promise<void> | undefined;
  /** The line broke. */
  fail(error: Error): void;
}
