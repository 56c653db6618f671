/** The proto3 JSON of what REST answers with: original field names, default values left out, int64 as strings. */

import { fromBinary, toJson, type DescMessage, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { LogRecordSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { DeltaSchema, SessionSchema, type Delta, type Session } from "../../gen/agentsessions/v1/session_pb.ts";
import type { StoredRecord } from "../../journal/index.ts";

const OPTIONS = { useProtoFieldName: true };

/** A message as proto3 JSON in original field names. */
export function messageJson<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonValue {
  return toJson(schema, message, OPTIONS);
}

export function sessionJson(session: Session): JsonValue {
  return toJson(SessionSchema, session, OPTIONS);
}

export function deltaJson(delta: Delta): JsonValue {
  return toJson(DeltaSchema, delta, OPTIONS);
}

/** A stored record as the export format has it. */
export function recordJson(record: StoredRecord): JsonValue {
  return toJson(LogRecordSchema, fromBinary(LogRecordSchema, record.bytes), OPTIONS);
}

/** A JSON response. */
export function jsonResponse(
  body: JsonValue,
  init: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): Response {
  return new Response(JSON.stringify(body), {
    status: init.status ?? 200,
    headers: { "content-type": "application/json", ...init.headers },
  });
}
