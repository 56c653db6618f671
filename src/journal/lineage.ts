/**
 * Lineage: which session owns which records of a forked session's journal. A fork copies nothing, so a journal is a list of
 * segments, each a run of records that one session of the family wrote.
 *
 * Walking costs one look-up for each ancestor and happens once for a read, whatever the number of records.
 */

import type { Seq } from "../base/ids.ts";

/** A run of records that one session wrote, both ends included. */
export interface Segment {
  readonly key: number;
  readonly fromSeq: Seq;
  readonly toSeq: Seq;
}

/** Where a session was forked off; undefined for one that was not. */
export type OriginOf = (key: number) => { readonly key: number; readonly forkSeq: Seq } | undefined;

/** The segments of records `fromSeq` to `toSeq` of a session, oldest first. An empty range has none. */
export function segmentsOf(key: number, fromSeq: Seq, toSeq: Seq, originOf: OriginOf): Segment[] {
  const newestFirst: Segment[] = [];
  let owner = key;
  let upTo = toSeq;
  while (upTo >= fromSeq) {
    const origin = originOf(owner);
    const ownFrom = origin === undefined ? 1 : origin.forkSeq + 1;
    if (ownFrom <= upTo) newestFirst.push({ key: owner, fromSeq: Math.max(ownFrom, fromSeq) as Seq, toSeq: upTo });
    if (origin === undefined) break;
    upTo = Math.min(upTo, origin.forkSeq) as Seq;
    owner = origin.key;
  }
  return newestFirst.reverse();
}
