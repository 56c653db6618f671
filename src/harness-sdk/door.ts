/**
 * Serving at the door of a sandbox. The runtime that starts the sandbox gives it a global `holdfastDoor` before the harness's script runs:
 * `send(frame)` takes a frame of the harness wire, as plain objects, and resolves when the next may be sent; what `receive` is set to is
 * called with each frame of the host, whole.
 */

import { HoldfastError } from "../base/errors.ts";
import { HarnessEnd } from "../harness-wire/harness-end.ts";
import type { HarnessFrameInit, ReceivedFrame } from "../harness-wire/line.ts";
import type { Harness } from "../spi/harness.ts";
import type { ServedHarness, ServeOptions } from "./serving.ts";

/** The door as a sandbox has it. */
export interface HoldfastDoor {
  receive: ((frame: ReceivedFrame) => void) | undefined;
  send(frame: HarnessFrameInit): Promise<void>;
}

/** Serves a harness at the sandbox's door; once. Rejects with FAILED_PRECONDITION where there is no door, or it is taken. */
export async function serveHarness(harness: Harness, options: ServeOptions = {}): Promise<ServedHarness> {
  const door = (globalThis as { holdfastDoor?: HoldfastDoor }).holdfastDoor;
  if (door === undefined) {
    throw new HoldfastError("failed_precondition", "serveHarness: there is no door here; under Node, import holdfast/harness as Node does");
  }
  if (door.receive !== undefined) throw new HoldfastError("failed_precondition", "serveHarness: a harness is served at this door already");
  const end = new HarnessEnd(harness, { send: (frame) => door.send(frame) }, { pullsHistory: options.history !== "pushed" });
  door.receive = (frame) => end.receive(frame);
  let close: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => (close = resolve));
  return {
    address: "door",
    closed,
    [Symbol.asyncDispose]: async () => {
      door.receive = undefined;
      end.close();
      close();
    },
  };
}
