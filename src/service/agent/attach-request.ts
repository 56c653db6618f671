/** The session that a stream goes on with, as its metadata names it, and where its reading begins. */

import { invalidArgument } from "../../base/errors.ts";
import { seqOf, sessionUidOf, type Seq, type SessionUid } from "../../base/ids.ts";
import type { JournalStore, SessionRow } from "../../journal/index.ts";
import { EventKind } from "../../spi/index.ts";
import type { StreamContext } from "../contract.ts";

/** The metadata keys of a stream that goes on, and of its answer. */
export const SESSION_KEY = "holdfast-session";
export const FROM_SEQ_KEY = "holdfast-from-seq";
export const HEAD_SEQ_KEY = "holdfast-seq";

/** What a stream goes on with. */
export interface AttachRequest {
  readonly session: SessionUid;
  /** The last record that its client has seen; undefined where it does not say. */
  readonly fromSeq: Seq | undefined;
}

/** The request in the metadata; undefined for a stream that begins with StartSession. Throws INVALID_ARGUMENT that names the key. */
export function attachRequestOf({ metadata }: Pick<StreamContext, "metadata">): AttachRequest | undefined {
  const session = metadata(SESSION_KEY);
  if (session === undefined) return undefined;
  const fromSeq = metadata(FROM_SEQ_KEY);
  if (fromSeq !== undefined && !/^\d{1,16}$/.test(fromSeq)) throw invalidArgument(FROM_SEQ_KEY, "must be the seq of a record, or 0");
  return { session: sessionUidOf(session, SESSION_KEY), fromSeq: fromSeq === undefined ? undefined : seqOf(Number(fromSeq), FROM_SEQ_KEY) };
}

/** Where a stream stands in its session. */
export interface Position {
  /** What its client has seen. */
  readonly after: Seq;
  /** Where reading begins: what a turn has said before is needed to tell the rest of it. */
  readonly readFrom: Seq;
}

/** Where a stream stands that has seen all of the session. */
export function atHead({ projection }: SessionRow): Position {
  return { after: projection.lastSeq, readFrom: (projection.lastSeq + 1) as Seq };
}

/**
 * Where a stream stands that goes on from `fromSeq`; without it, from the start of the open turn. Throws INVALID_ARGUMENT past the head.
 */
export async function positionOf(journal: JournalStore, row: SessionRow, fromSeq: Seq | undefined): Promise<Position> {
  const { lastSeq, openTurn } = row.projection;
  const own = openTurn !== undefined && openTurn.startSeq > (row.parent?.forkSeq ?? 0) ? openTurn : undefined;
  if (fromSeq === undefined) return own === undefined ? atHead(row) : { after: (own.startSeq - 1) as Seq, readFrom: own.startSeq };
  if (fromSeq > lastSeq) throw invalidArgument(FROM_SEQ_KEY, `must be at most the session's last seq, which is ${lastSeq}`);
  if (own !== undefined && fromSeq >= own.startSeq) return { after: fromSeq, readFrom: own.startSeq };
  if (fromSeq === lastSeq) return atHead(row);
  return { after: fromSeq, readFrom: (await turnStart(journal, row.seed.uid, fromSeq)) ?? ((fromSeq + 1) as Seq) };
}

/** Records that are looked at in one step back. */
const LOOK_BACK_RECORDS = 256;

/** The start of the turn that is open at `seq`; undefined where none is. */
async function turnStart(journal: JournalStore, session: SessionUid, seq: Seq): Promise<Seq | undefined> {
  for (let toSeq: number = seq; toSeq > 0; toSeq -= LOOK_BACK_RECORDS) {
    const fromSeq = Math.max(1, toSeq - LOOK_BACK_RECORDS + 1);
    let last: { readonly seq: Seq; readonly isStart: boolean } | undefined;
    for await (const page of journal.read({ session, fromSeq: fromSeq as Seq, toSeq: toSeq as Seq })) {
      for (const { kind, seq: at } of page) {
        if (kind === EventKind.EVENT_EXECUTION_START || kind === EventKind.EVENT_END) {
          last = { seq: at, isStart: kind === EventKind.EVENT_EXECUTION_START };
        }
      }
    }
    if (last !== undefined) return last.isStart ? last.seq : undefined;
  }
  return undefined;
}
