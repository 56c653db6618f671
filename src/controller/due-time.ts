/** Waiting for a time that may move, by a clock that may be set. */

import type { Clock, Timer } from "../base/ports.ts";

/** How long a time is waited for before it is looked at again. */
const LOOK_MS = 5_000;

/** Calls `then` once nothing is left of `leftMs`. Cancelling ends the wait; a time that is undefined is not waited for. */
export function whenDue(clock: Clock, leftMs: () => number | undefined, then: () => void): Timer {
  let timer: Timer | undefined;
  const look = (): void => {
    const ms = leftMs();
    if (ms === undefined) return;
    timer = clock.after(Math.min(Math.max(0, ms), LOOK_MS), () => ((leftMs() ?? 1) > 0 ? look() : then()));
  };
  look();
  return { cancel: () => timer?.cancel() };
}
