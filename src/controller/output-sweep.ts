/**
 * One sweep of large outputs: what tools put beside the journal goes with the session that they put it for.
 *
 * Records name such outputs, and only a session's own records and those of its forks do: a fork shares them, and what it puts itself is its own.
 * So an output is needed as long as its session has a row, and a session keeps its row while a fork shares any of its records.
 *
 * Invariants:
 * - What a record can name is never removed. Who has outputs is listed before its row is looked for: a session puts outputs while it is there,
 *   so one without a row had been reclaimed.
 * - Nothing goes that was put or renewed within `OUTPUT_AGE_MS`: an import may bring a session back under its uid, and a turn of it may have
 *   put an output since its row was looked for.
 * - A sweep may end anywhere, the process with it. The next one finds what is left.
 *
 * What a crash left between an output and the record that would have named it goes with its session, as everything of it does.
 */

import { sessionUidOf } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import type { JournalStore } from "../journal/index.ts";
import type { SessionBlobs } from "../spi/index.ts";
import { everyRow } from "./every-row.ts";

/** How long an output of a session that is gone is left alone. */
export const OUTPUT_AGE_MS = 60 * 60 * 1000;
/** Outputs that one sweep removes at most. */
export const OUTPUTS_REMOVED_MAX = 10_000;

/** What a sweep needs. */
export interface OutputSweepOptions {
  readonly journal: Pick<JournalStore, "get" | "list">;
  readonly outputs: Pick<SessionBlobs, "ownerOf" | "owners" | "remove">;
  readonly clock: Clock;
  /** Default: `OUTPUTS_REMOVED_MAX`. */
  readonly removedMax?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What came of a sweep. */
export interface OutputSweepReport {
  /** Outputs that are gone. */
  readonly removed: number;
  readonly removedBytes: number;
  /** Whether it removed as many as it may, so that others may be left. */
  readonly isCut: boolean;
}

/** Sweeps once. Rejects with the store's error. */
export async function sweepOutputs(options: OutputSweepOptions): Promise<OutputSweepReport> {
  const { outputs, clock, removedMax = OUTPUTS_REMOVED_MAX, signal } = options;
  const storedBeforeMs = clock.nowMs() - OUTPUT_AGE_MS;
  let [removed, removedBytes] = [0, 0];
  for (const owner of await ownersWithoutRow(options)) {
    const went = await outputs.remove(owner, { storedBeforeMs, removedMax: removedMax - removed, signal });
    removed += went.length;
    for (const { sizeBytes } of went) removedBytes += sizeBytes;
    if (removed >= removedMax) return { removed, removedBytes, isCut: true };
  }
  return { removed, removedBytes, isCut: false };
}

/** Those that have outputs and no row. Whose name is no uid is looked for among all rows; there are none, as a rule. */
async function ownersWithoutRow({ journal, outputs, signal }: OutputSweepOptions): Promise<ReadonlySet<string>> {
  const gone = new Set<string>();
  const unnamed = new Set<string>();
  for await (const owner of outputs.owners({ signal })) {
    const uid = sessionUidOf(owner);
    if (outputs.ownerOf(uid) !== owner) unnamed.add(owner);
    else if ((await journal.get(uid, { signal })) === undefined) gone.add(owner);
  }
  if (unnamed.size === 0) return gone;
  for await (const row of everyRow(journal, signal)) unnamed.delete(outputs.ownerOf(row.seed.uid));
  return new Set([...gone, ...unnamed]);
}
