/** Sweeps blobs for as long as a host runs: captured memory (`capture-sweep.ts`), large outputs of tools (`output-sweep.ts`). */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { Clock, Log } from "../base/ports.ts";
import { CAPTURE_AGE_MS, sweepCaptures, type CaptureSweepOptions } from "./capture-sweep.ts";
import { OUTPUT_AGE_MS, sweepOutputs, type OutputSweepOptions } from "./output-sweep.ts";
import type { Sweeper } from "./sweeper.ts";

/** How often blobs are swept. */
export const BLOB_SWEEP_INTERVAL_MS = 60 * 60 * 1000;
/** When a sweep goes on that removed as many blobs as it may. */
const CUT_PAUSE_MS = 10_000;
/** By how much the wall clock may go ahead of the time that passed, between two sweeps, without being taken for a jump. */
const JUMP_MS = Math.min(CAPTURE_AGE_MS, OUTPUT_AGE_MS) / 4;

/** What a sweeper of captures needs. */
export interface CaptureSweeperOptions extends Omit<CaptureSweepOptions, "signal"> {
  readonly log: Log;
}

/** What a sweeper of outputs needs. */
export interface OutputSweeperOptions extends Omit<OutputSweepOptions, "signal"> {
  readonly log: Log;
}

/** Sweeps captures now and then every `BLOB_SWEEP_INTERVAL_MS`. What keeps a sweep from its work is logged, and the next one tries again. */
export function startCaptureSweeper(options: CaptureSweeperOptions): Sweeper {
  return startBlobSweeper(options, "captures that no session needs", (signal) => sweepCaptures({ ...options, signal }));
}

/** The same for large outputs of tools. */
export function startOutputSweeper(options: OutputSweeperOptions): Sweeper {
  return startBlobSweeper(options, "large outputs of sessions that are gone", (signal) => sweepOutputs({ ...options, signal }));
}

interface SweptBlobs {
  readonly removed: number;
  readonly isCut: boolean;
}

interface BlobSweep {
  readonly clock: Clock;
  readonly log: Log;
  /** What it removes, in words. */
  readonly what: string;
  readonly sweep: (signal: AbortSignal) => Promise<SweptBlobs>;
  readonly signal: AbortSignal;
}

function startBlobSweeper(
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  what: string,
  sweep: (signal: AbortSignal) => Promise<SweptBlobs>,
): Sweeper {
  const stopping = new AbortController();
  const swept = sweepForever({ clock, log, what, sweep, signal: stopping.signal });
  return {
    stop: async () => {
      stopping.abort(new HoldfastError("cancelled", "sweeper: it was stopped"));
      await swept;
    },
  };
}

async function sweepForever(blobs: BlobSweep): Promise<void> {
  const { clock, signal } = blobs;
  const jumps = new ClockJumps(clock);
  while (!signal.aborted) {
    // After a jump what is on its way into a row looks old; by the next sweep it has arrived.
    const isCut = jumps.found() ? false : await sweepOnce(blobs);
    await clock.sleep(isCut ? CUT_PAUSE_MS : BLOB_SWEEP_INTERVAL_MS, { signal }).catch(() => undefined);
  }
}

/** Whether there is more to remove at once. */
async function sweepOnce({ log, what, sweep, signal }: BlobSweep): Promise<boolean> {
  try {
    const { isCut, ...report } = await sweep(signal);
    if (report.removed > 0) log.log("info", `removed ${what}`, { ...report });
    return isCut;
  } catch (error) {
    if (!signal.aborted) {
      const { code, message } = toHoldfastError(error);
      log.log("warn", `${what} were not removed`, { code, reason: message });
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
