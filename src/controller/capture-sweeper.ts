/** Sweeps captured memory for as long as a host runs. What a sweep removes, and why that is safe, is in `capture-sweep.ts`. */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { Clock, Log } from "../base/ports.ts";
import { CAPTURE_AGE_MS, sweepCaptures, type CaptureSweepOptions } from "./capture-sweep.ts";
import type { Sweeper } from "./sweeper.ts";

/** How often captures are swept. */
export const CAPTURE_SWEEP_INTERVAL_MS = 60 * 60 * 1000;
/** When a sweep goes on that removed as many blobs as it may. */
const CUT_PAUSE_MS = 10_000;
/** By how much the wall clock may go ahead of the time that passed, between two sweeps, without being taken for a jump. */
const JUMP_MS = CAPTURE_AGE_MS / 4;

/** What a sweeper of captures needs. */
export interface CaptureSweeperOptions extends Omit<CaptureSweepOptions, "signal"> {
  readonly log: Log;
}

/** Sweeps now and then every `CAPTURE_SWEEP_INTERVAL_MS`. What keeps a sweep from its work is logged, and the next one tries again. */
export function startCaptureSweeper({ log, ...options }: CaptureSweeperOptions): Sweeper {
  const stopping = new AbortController();
  const { signal } = stopping;
  const swept = sweepForever({ ...options, signal }, log);
  return {
    stop: async () => {
      stopping.abort(new HoldfastError("cancelled", "sweeper: it was stopped"));
      await swept;
    },
  };
}

async function sweepForever(options: CaptureSweepOptions & { readonly signal: AbortSignal }, log: Log): Promise<void> {
  const { clock, signal } = options;
  const jumps = new ClockJumps(clock);
  while (!signal.aborted) {
    // After a jump what is on its way into a row looks old; by the next sweep it has arrived.
    const isCut = jumps.found() ? false : await sweepOnce(options, log);
    await clock.sleep(isCut ? CUT_PAUSE_MS : CAPTURE_SWEEP_INTERVAL_MS, { signal }).catch(() => undefined);
  }
}

/** Whether there is more to remove at once. */
async function sweepOnce(options: CaptureSweepOptions, log: Log): Promise<boolean> {
  try {
    const { isCut, ...report } = await sweepCaptures(options);
    if (report.removed > 0) log.log("info", "removed captures that no session needs", { ...report });
    return isCut;
  } catch (error) {
    if (options.signal?.aborted !== true) {
      const { code, message } = toHoldfastError(error);
      log.log("warn", "captures that no session needs were not removed", { code, reason: message });
    }
    return false;
  }
}

/** Notices that the wall clock went ahead of the time that passed. */
class ClockJumps {
  readonly #clock: Clock;
  #aheadMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#aheadMs = clock.nowMs() - clock.monotonicMs();
  }

  /** Whether it did since the last look. */
  found(): boolean {
    const beforeMs = this.#aheadMs;
    this.#aheadMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    return this.#aheadMs - beforeMs > JUMP_MS;
  }
}
