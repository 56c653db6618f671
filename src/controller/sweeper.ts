/**
 * The sweeper: it reclaims the storage of sessions that were deleted long enough ago.
 *
 * Invariants:
 * - What a living session reads never changes: the store keeps every record that a child shares, in the transaction that removes
 *   the others.
 * - A sweep can end anywhere, the process with it. The next one goes on from what is left.
 * - Newer sessions are looked at before older ones, so a child goes before its parent; where clocks say otherwise, the family
 *   unwinds over several passes.
 */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { Clock, Log } from "../base/ports.ts";
import type { JournalStore, ListCursor, ReclaimOutcome, SessionRow } from "../journal/index.ts";

/** How long a session waits that came with an import and was not completed: as long as an import may take, and more. */
export const INCOMPLETE_RETENTION_MS = 24 * 60 * 60 * 1000;

const PAGE_ROWS = 100;

/** What a sweep needs. */
export interface SweepOptions {
  readonly journal: Pick<JournalStore, "list" | "reclaim">;
  readonly clock: Clock;
  /** How long a deleted session stays readable, in milliseconds; 0: not at all. */
  readonly retentionMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** What came of a sweep. */
export interface SweepReport {
  /** Sessions that are gone. */
  readonly reclaimed: number;
  /** Sessions of which the prefix stays that children share. */
  readonly kept: number;
}

/** Sweeps once: in passes, until one finds nothing more that can go. Rejects with the store's error. */
export async function sweep(options: SweepOptions): Promise<SweepReport> {
  let reclaimed = 0;
  for (;;) {
    const pass = await sweepPass(options);
    reclaimed += pass.reclaimed;
    const isSettled = pass.kept === 0 || (pass.reclaimed === 0 && pass.shrunk === 0);
    if (isSettled || options.signal?.aborted === true) return { reclaimed, kept: pass.kept };
  }
}

interface PassReport extends SweepReport {
  /** How many of those that are kept have lost something. */
  readonly shrunk: number;
}

async function sweepPass(options: SweepOptions): Promise<PassReport> {
  const report = { reclaimed: 0, kept: 0, shrunk: 0 };
  for await (const row of dueSessions(options)) {
    const outcome = await reclaimWhole(options, row);
    if (outcome?.kind === "reclaimed") report.reclaimed += 1;
    if (outcome?.kind !== "kept") continue;
    report.kept += 1;
    if (outcome.keptSeq !== row.keptSeq) report.shrunk += 1;
  }
  return report;
}

/** Deleted sessions whose time has come, the newest first. */
async function* dueSessions({ journal, clock, retentionMs, signal }: SweepOptions): AsyncGenerator<SessionRow, void, undefined> {
  const nowMs = clock.nowMs();
  const incompleteBeforeMs = nowMs - Math.max(retentionMs, INCOMPLETE_RETENTION_MS);
  let after: ListCursor | undefined;
  do {
    const page = await journal.list({ deletedBeforeMs: nowMs - retentionMs, after, limit: PAGE_ROWS, signal });
    for (const row of page.rows) if (!isIncompleteRow(row) || row.updateTimeMs <= incompleteBeforeMs) yield row;
    after = page.next;
  } while (after !== undefined);
}

/** Whether nobody deleted the session: it is not complete yet, or never will be. */
function isIncompleteRow(row: SessionRow): boolean {
  return row.keptSeq === row.projection.lastSeq;
}

/** Slice by slice; undefined when the signal came first. */
async function reclaimWhole({ journal, signal }: SweepOptions, row: SessionRow): Promise<ReclaimOutcome | undefined> {
  while (signal?.aborted !== true) {
    const outcome = await journal.reclaim(row.seed.uid);
    if (outcome.kind !== "more") return outcome;
  }
  return undefined;
}

const INTERVAL_MIN_MS = 1_000;
const INTERVAL_MAX_MS = 10 * 60_000;

/** How often a host sweeps: about ten times within the retention, from every second to every ten minutes. */
export function sweepIntervalMs(retentionMs: number): number {
  return Math.min(INTERVAL_MAX_MS, Math.max(INTERVAL_MIN_MS, retentionMs / 10));
}

/** What a sweeper needs. */
export interface SweeperOptions extends Omit<SweepOptions, "signal"> {
  readonly log: Log;
}

/** A sweeper at work. */
export interface Sweeper {
  /** Ends it, in the middle of a session if need be. Resolves when it does nothing more. */
  stop(): Promise<void>;
}

/** Sweeps now and then every `sweepIntervalMs`. What keeps a sweep from its work is logged, and the next one tries again. */
export function startSweeper({ log, ...options }: SweeperOptions): Sweeper {
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

async function sweepForever(options: SweepOptions & { readonly signal: AbortSignal }, log: Log): Promise<void> {
  const { clock, retentionMs, signal } = options;
  while (!signal.aborted) {
    try {
      const { reclaimed, kept } = await sweep(options);
      if (reclaimed > 0) log.log("info", "reclaimed deleted sessions", { reclaimed, kept });
    } catch (error) {
      if (!signal.aborted) log.log("warn", "deleted sessions were not reclaimed", { code: toHoldfastError(error).code });
    }
    await clock.sleep(sweepIntervalMs(retentionMs), { signal }).catch(() => undefined);
  }
}
