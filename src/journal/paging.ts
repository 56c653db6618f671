/** Pages: how a range of records is cut, so that a reader of any journal needs memory for one page only. */

import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { seqOf, type Seq } from "../base/ids.ts";
import { PAGE_BYTES_SOFT_MAX, PAGE_RECORDS_DEFAULT } from "./limits.ts";
import type { Segment } from "./lineage.ts";
import type { StoredRecord } from "./record.ts";
import { readableSeq, type SessionState } from "./session-state.ts";
import type { ReadRequest } from "./store.ts";

/** A checked range; `toSeq` is the last record that can be read at most. */
export interface ReadRange {
  readonly fromSeq: Seq;
  readonly toSeq: Seq;
}

/** The range that `request` asks of a session. */
export function rangeOf(request: ReadRequest, state: SessionState): ReadRange {
  const lastSeq = readableSeq(state);
  const fromSeq = seqOf(request.fromSeq ?? 1, "from_seq");
  const toSeq = seqOf(request.toSeq ?? lastSeq, "to_seq");
  return { fromSeq: Math.max(fromSeq, 1) as Seq, toSeq: Math.min(toSeq, lastSeq) as Seq };
}

/** The most records of a page of `request`. */
export function pageRecordsMaxOf(request: ReadRequest): number {
  const max = request.pageRecordsMax ?? PAGE_RECORDS_DEFAULT;
  if (!Number.isSafeInteger(max) || max < 1) throw invalidArgument("page_records_max", "must be a whole number of at least 1");
  return max;
}

/**
 * Reads records of one segment's owner: `fromSeq` and what follows, up to `toSeq`, at most `recordsMax`, and no further record
 * once they come to `bytesMax` bytes. At least one where there is one.
 */
export type ReadRun = (key: number, fromSeq: Seq, toSeq: Seq, recordsMax: number, bytesMax: number) => StoredRecord[];

/**
 * The pages of `segments`. A page ends at `recordsMax` records, or once it holds about 1 MiB; it may cross segments. Throws
 * DATA_LOSS where a record is missing.
 */
export function* pagesOf(segments: readonly Segment[], recordsMax: number, readRun: ReadRun): Generator<StoredRecord[], void, void> {
  let page: StoredRecord[] = [];
  let pageBytes = 0;
  for (const { key, fromSeq, toSeq } of segments) {
    let next = fromSeq;
    while (next <= toSeq) {
      const run = readRun(key, next, toSeq, recordsMax - page.length, PAGE_BYTES_SOFT_MAX - pageBytes);
      requireUnbroken(run, next);
      next = (next + run.length) as Seq;
      pageBytes += bytesOf(run);
      page = page.length === 0 ? run : page.concat(run);
      if (page.length >= recordsMax || pageBytes >= PAGE_BYTES_SOFT_MAX) {
        yield page;
        page = [];
        pageBytes = 0;
      }
    }
  }
  if (page.length > 0) yield page;
}

/**
 * What a read up to `toSeq` that failed with `error` is answered. A record that is missing since the session was reclaimed under the
 * reader is no damage; `state` is the session as it is now.
 */
export function readFault(error: unknown, state: SessionState | undefined, toSeq: Seq): unknown {
  const isMissing = error instanceof HoldfastError && error.code === "data_loss";
  if (!isMissing || (state !== undefined && readableSeq(state) >= toSeq)) return error;
  return new HoldfastError("aborted", "session: it was reclaimed while it was read", { cause: error });
}

function bytesOf(run: readonly StoredRecord[]): number {
  let bytes = 0;
  for (const record of run) bytes += record.bytes.length;
  return bytes;
}

/** Seqs are unique and sorted, so a run is whole if its ends are as far apart as it is long. */
function requireUnbroken(run: readonly StoredRecord[], fromSeq: Seq): void {
  const first = run[0];
  const last = run.at(-1);
  if (first === undefined || first.seq !== fromSeq || last?.seq !== fromSeq + run.length - 1) {
    throw new HoldfastError("data_loss", `journal: a record at or after seq ${fromSeq} is missing`, { details: { fromSeq } });
  }
}
