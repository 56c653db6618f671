/** A history that goes with the start, as a whole. */

import { HoldfastError } from "../base/errors.ts";
import type { Clock } from "../base/ports.ts";
import type { Event, History } from "../spi/index.ts";
import { encodedPages } from "./history-pages.ts";
import type { WireLimits } from "./limits.ts";

/** The events of a history: encoded for a line that takes them so, as they are otherwise. */
export interface PushedHistory {
  readonly events: readonly Event[];
  readonly encoded: readonly Uint8Array[];
}

/** After how many bytes others get a turn. */
const PAUSE_BYTES = 1024 * 1024;

/** Reads a whole history. Throws RESOURCE_EXHAUSTED for one that is larger than `bytesMax`, as soon as that shows. */
export async function readWhole(
  history: History,
  options: {
    readonly encoded: boolean;
    readonly bytesMax: number;
    readonly limits: WireLimits;
    readonly clock: Clock;
    readonly signal: AbortSignal;
  },
): Promise<PushedHistory> {
  if (history.lastSeq === 0) return { events: [], encoded: [] };
  const { limits, signal, bytesMax } = options;
  const whole: { events: Event[]; encoded: Uint8Array[] } = { events: [], encoded: [] };
  let bytes = 0;
  let pauseAt = PAUSE_BYTES;
  for await (const page of encodedPages(history, { eventsMax: limits.pageEventsMax, bytesMax: limits.pageBytesMax, signal })) {
    signal.throwIfAborted();
    bytes += page.bytes;
    if (bytes > bytesMax) throw tooLong(bytesMax);
    if (options.encoded) whole.encoded.push(...page.encoded);
    else whole.events.push(...page.events);
    if (bytes < pauseAt) continue;
    pauseAt = bytes + PAUSE_BYTES;
    await options.clock.sleep(0, { signal });
  }
  return whole;
}

function tooLong(bytesMax: number): HoldfastError {
  return new HoldfastError(
    "resource_exhausted",
    `harness: the session's history is larger than the ${bytesMax} bytes that can be pushed to it; it must pull its history instead`,
  );
}
