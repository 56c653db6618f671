/** Records in words, for failures that a person reads. */

import { EventKindSchema, Lifecycle_KindSchema, type Lifecycle_Kind, type LogRecord } from "../../gen/agentsessions/v1/common_pb.ts";

/** The kind of a record without its prefix; a LIFECYCLE with its own kind, an END with its state: `LIFECYCLE CANCEL`, `END COMPLETED`. */
export function wordOf({ event }: LogRecord): string {
  if (event === undefined) return "no event";
  const kind = (EventKindSchema.value[event.kind]?.name ?? `kind ${event.kind}`).replace("EVENT_", "");
  if (event.body.case === "lifecycle") return `${kind} ${lifecycleWord(event.body.value.kind)}`;
  return event.body.case === "end" ? `${kind} ${event.body.value.state}` : kind;
}

function lifecycleWord(kind: Lifecycle_Kind): string {
  return (Lifecycle_KindSchema.value[kind]?.name ?? `${kind}`).replace("LIFECYCLE_", "");
}

/** The kinds of records, in order. */
export function wordsOf(records: readonly LogRecord[]): readonly string[] {
  return records.map(wordOf);
}
