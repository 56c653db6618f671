/**
 * One sweep of captured memory: what no session can need any more is removed.
 *
 * Nothing is counted, so nothing can drift. A capture is needed while the row of a session would be brought back from it
 * (`computeToRestore`), and so is every part that it names. All other blobs are garbage: of captures that newer ones replaced, of sessions
 * that were reclaimed, of captures whose append never came, of whatever a kill left.
 *
 * Invariants:
 * - What a row would be brought back from is never removed, nor is a part of it.
 * - A sweep may end anywhere, the process with it. The next one finds what is left.
 *
 * Why that holds while sessions go on. A row comes to name a blob in two ways: a turn or a suspension captures memory, a fork copies its
 * parent's reference. Both put or renew the blob first and append then, within `CAPTURE_AGE_MS`. A sweep takes blobs only that were neither put
 * nor renewed for so long before it began. So whoever came to name such a blob had done so when the sweep began; since then the blob has been
 * named by rows that had it, and a row that lets go of it does not come back to it. A row that has it at the end has had it all along, and was
 * seen by the listing with it. In particular:
 * - A fork while the rows are listed: the child's row may not be seen, and the parent's only after it moved on. The fork has renewed what the
 *   child begins with, parts included, or was refused.
 * - A capture on its way into a row, and the older layers that it is made of: all were put or renewed as it was taken.
 * - A restore while a sweep runs reads what its row names. Only a row that moved on lets that go, and then the turn that restores has lost
 *   its session.
 * - Another host on the same journal and the same captures: as this one. A clock that is wrong by more than `CAPTURE_AGE_MS` breaks this; hosts of one
 *   journal have clocks that agree, as their leases need it.
 * - A wall clock that jumps ahead, as after the sleep of a laptop, makes what is on its way look old: the sweeper leaves a sweep out then.
 * - An import names captures that were not renewed by it. An export has no captures in it: whoever brings them along puts them here after
 *   the import, when the row is there.
 * What is swept belongs to one journal: two journals on one store of captures would remove each other's.
 */

import { HoldfastError } from "../base/errors.ts";
import type { Clock } from "../base/ports.ts";
import type { JournalStore, SessionRow } from "../journal/index.ts";
import { snapshotBlob, type BlobName, type BlobStore, type CaptureParts } from "../spi/index.ts";
import { computeToRestore } from "./compute.ts";
import { everyRow } from "./every-row.ts";

/** How long a blob that no row names is left alone: more than lies between a capture or a fork and its append. */
export const CAPTURE_AGE_MS = 60 * 60 * 1000;
/** Blobs that one sweep removes at most. */
export const CAPTURES_REMOVED_MAX = 10_000;

/** What a sweep needs. */
export interface CaptureSweepOptions {
  readonly journal: Pick<JournalStore, "list">;
  /** Where captures are stored, and nothing else. */
  readonly captures: Pick<BlobStore, "get" | "list" | "delete">;
  /** The kinds of captures that this host knows. */
  readonly kinds: readonly CaptureParts[];
  readonly clock: Clock;
  /** Default: `CAPTURES_REMOVED_MAX`. */
  readonly removedMax?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What came of a sweep. */
export interface CaptureSweepReport {
  /** Blobs that are gone. */
  readonly removed: number;
  readonly removedBytes: number;
  /** Blobs that sessions need. */
  readonly needed: number;
  /** Whether it removed as many as it may and left others. */
  readonly isCut: boolean;
}

/**
 * Sweeps once. Rejects with the store's error, and with FAILED_PRECONDITION where a session needs a capture of a kind or a format that this
 * host does not know: what else it is made of cannot be told, so nothing is removed.
 */
export async function sweepCaptures(options: CaptureSweepOptions): Promise<CaptureSweepReport> {
  const { captures, clock, removedMax = CAPTURES_REMOVED_MAX, signal } = options;
  const storedBeforeMs = clock.nowMs() - CAPTURE_AGE_MS;
  const needed = await neededDigests(options);
  let [removed, removedBytes] = [0, 0];
  for await (const blob of captures.list({ signal })) {
    if (blob.storedMs >= storedBeforeMs || needed.has(blob.digest)) continue;
    if (removed >= removedMax) return { removed, removedBytes, needed: needed.size, isCut: true };
    if (!(await captures.delete(blob, { storedBeforeMs, signal }))) continue;
    removed += 1;
    removedBytes += blob.sizeBytes;
  }
  return { removed, removedBytes, needed: needed.size, isCut: false };
}

/** The digests of all blobs that sessions need. */
async function neededDigests(options: CaptureSweepOptions): Promise<ReadonlySet<string>> {
  const needed = new Set<string>();
  const traced = new Set<string>();
  for await (const row of everyRow(options.journal, options.signal)) {
    const capture = captureOf(row);
    // Children of one fork name the same.
    if (capture === undefined || traced.has(capture.digest)) continue;
    traced.add(capture.digest);
    needed.add(capture.digest);
    for (const { digest } of await partsOf(capture, options)) needed.add(digest);
  }
  return needed;
}

/** The capture that a session would be brought back from. One that was reclaimed, and is there for its children's records, never is. */
function captureOf(row: SessionRow): BlobName | undefined {
  if (row.keptSeq !== undefined && row.keptSeq < row.projection.lastSeq) return undefined;
  return snapshotBlob(computeToRestore(row)?.snapshot?.externalUri ?? "");
}

async function partsOf(capture: BlobName, { captures, kinds, signal }: CaptureSweepOptions): Promise<readonly BlobName[]> {
  const bytes = await captures.get(capture, { signal }).catch(undefinedIfLost);
  if (bytes === undefined) return [];
  for (const kind of kinds) {
    const parts = kind(bytes);
    if (parts !== undefined) return parts;
  }
  throw new HoldfastError(
    "failed_precondition",
    "captures: a session needs one of a kind that this host does not know; nothing is removed",
  );
}

/** A capture that is damaged, or was never here, is restored by nobody; so none of its parts is needed for it. */
function undefinedIfLost(error: unknown): undefined {
  const isLost = error instanceof HoldfastError && (error.code === "data_loss" || error.code === "invalid_argument");
  if (!isLost) throw error;
}
