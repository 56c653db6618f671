/** Messages as `--json` prints them: proto3 JSON in original field names. A LogRecord so printed is the export format. */

import { toJson, type DescMessage, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import type { LogRecord, Session, StreamItem } from "../client/index.ts";
import { LogRecordSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { DeltaSchema, SessionSchema } from "../gen/agentsessions/v1/session_pb.ts";

/** A message as proto3 JSON. */
export function messageJson<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonValue {
  return toJson(schema, message, { useProtoFieldName: true });
}

/** The same with the fields that have their default value: a verdict must say `false`, and not by leaving it out. */
export function explicitJson<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonValue {
  return toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true });
}

export function sessionJson(session: Session): JsonValue {
  return messageJson(SessionSchema, session);
}

export function recordJson(record: LogRecord): JsonValue {
  return messageJson(LogRecordSchema, record);
}

/** An item of a live stream as an ExecUpdate has it. */
export function itemJson(item: StreamItem): JsonValue {
  switch (item.kind) {
    case "session":
      return { session: sessionJson(item.session) };
    case "record":
      return { record: recordJson(item.record) };
    case "delta":
      return { delta: messageJson(DeltaSchema, item.delta) };
  }
}
