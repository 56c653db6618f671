/** The projection of a journal at an earlier seq, without folding all of it. */

import { invariant } from "../base/assert.ts";
import type { Seq, SessionUid } from "../base/ids.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { EventKind } from "../gen/agentsessions/v1/common_pb.ts";
import { EMPTY_PROJECTION, project, type Projection } from "./projection.ts";
import type { JournalStore, SessionRow } from "./store.ts";

/** Records that are looked at in one step back. */
const LOOK_BACK_RECORDS = 256;

/** The projection of `row`'s journal at one of its seqs: folded from the END before it, so that only a turn is read. */
export async function projectionAt(journal: JournalStore, row: SessionRow, atSeq: Seq): Promise<Projection> {
  if (atSeq === row.projection.lastSeq && row.keptSeq === undefined) return row.projection;
  const session = row.seed.uid;
  const endSeq = await lastEndSeq(journal, session, atSeq);
  let projection = EMPTY_PROJECTION;
  if (endSeq > 0) projection = { ...projection, lastSeq: (endSeq - 1) as Seq };
  for await (const page of journal.read({ session, fromSeq: Math.max(endSeq, 1) as Seq, toSeq: atSeq })) {
    for (const record of page) {
      const { event } = decodeLogRecord(record.bytes);
      invariant(event !== undefined, "a committed record holds an event");
      projection = project(projection, record.seq, record.contentHash, event);
    }
  }
  return projection;
}

/** The seq of the last END at or before `atSeq`; 0 where there is none. */
async function lastEndSeq(journal: JournalStore, session: SessionUid, atSeq: Seq): Promise<number> {
  for (let toSeq: number = atSeq; toSeq > 0; toSeq -= LOOK_BACK_RECORDS) {
    const fromSeq = Math.max(1, toSeq - LOOK_BACK_RECORDS + 1);
    let endSeq = 0;
    for await (const page of journal.read({ session, fromSeq: fromSeq as Seq, toSeq: toSeq as Seq })) {
      for (const record of page) if (record.kind === EventKind.EVENT_END) endSeq = record.seq;
    }
    if (endSeq > 0) return endSeq;
  }
  return 0;
}
