/** Records as a transcript takes them. What says nothing to a client is not decoded. */

import { fromBinary } from "@bufbuild/protobuf";
import { invariant } from "../../base/assert.ts";
import type { SessionUid } from "../../base/ids.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import { CompactionFactsSchema, ModelFactsSchema } from "../../gen/holdfast/v1/beside_pb.ts";
import type { JournalStore, StoredRecord } from "../../journal/index.ts";
import { baselineAccount, EventKind } from "../../spi/index.ts";
import type { TranscriptRecord } from "./transcript.ts";

/** Whether a transcript has to see records of this kind; inputs can be large, and are what the client said itself. */
export function isTold(kind: EventKind): boolean {
  return kind !== EventKind.EVENT_INPUT;
}

/** A record with what is kept beside it, where its kind has something there. */
export async function transcriptRecordOf(journal: JournalStore, session: SessionUid, record: StoredRecord): Promise<TranscriptRecord> {
  const { seq, bytes, kind } = record;
  const { event } = decodeLogRecord(bytes);
  invariant(event !== undefined, "a record that was committed holds an event");
  const hasFacts = kind === EventKind.EVENT_OUTPUT || baselineAccount(event) !== undefined;
  if (!hasFacts) return { seq, event };
  const aside = (await journal.readAsides({ session, fromSeq: seq, toSeq: seq })).get(seq);
  if (aside === undefined) return { seq, event };
  return kind === EventKind.EVENT_OUTPUT
    ? { seq, event, modelFacts: fromBinary(ModelFactsSchema, aside) }
    : { seq, event, compactionFacts: fromBinary(CompactionFactsSchema, aside) };
}
