/** Messages as a later turn has them: out of the journal's bytes, and with the results of tools. */

import { create } from "@bufbuild/protobuf";
import { fenceOf, seqOf } from "../base/ids.ts";
import { decodeLogRecord, encodeLogRecord } from "../canon/index.ts";
import { LogRecordSchema, MessageSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { EventKind } from "../spi/index.ts";

/** A message as it comes back from the journal. */
export function throughJournal(message: Message): Message {
  const event = create(LogRecordSchema, { event: { kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: message } } }).event;
  if (event === undefined) throw new Error("no event");
  const bytes = encodeLogRecord({ seq: seqOf(1), prevHash: "", contentHash: "", fence: fenceOf(1), event });
  const { body } = decodeLogRecord(bytes).event ?? {};
  if (body?.case !== "message") throw new Error("no message");
  return body.value;
}

/** A message with the result `{"ok": true}` for each call. */
export function toolMessage(...callIds: readonly string[]): Message {
  const parts = callIds.map((id) => ({ part: { case: "toolResult" as const, value: { id, output: { ok: true } } } }));
  return create(MessageSchema, { role: "tool", parts });
}
