/** Frames of live streams as bytes. A record's stored bytes are wrapped, never decoded. */

import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { ExecUpdateSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { ExportChunkSchema } from "../../gen/holdfast/v1/export_pb.ts";
import { StreamCursorSchema } from "../../gen/holdfast/v1/agent_stream_pb.ts";
import { TurnCheckSchema, type TurnCheck } from "../../gen/holdfast/v1/replay_pb.ts";
import type { HoldfastError } from "../../base/errors.ts";
import { SessionResponseSchema, TeamEventSchema, type TeamEvent } from "../../gen/roz/v1/agent_pb.ts";
import { wrapRecord } from "../../grpc/index.ts";
import type { StoredRecord } from "../../journal/index.ts";
import type { AgentResponse, StreamItem } from "../../service/contract.ts";

/** The update that carries `item`. ExecUpdate and TailUpdate have the same fields, so this is both. */
export function* updateBytes(item: StreamItem): Generator<Uint8Array> {
  switch (item.kind) {
    case "record":
      yield wrapRecord(item.record.bytes);
      return;
    case "delta":
      yield toBinary(ExecUpdateSchema, create(ExecUpdateSchema, { update: { case: "delta", value: item.delta } }));
      return;
    case "session":
      yield toBinary(ExecUpdateSchema, create(ExecUpdateSchema, { update: { case: "session", value: item.session } }));
  }
}

/** The records of a page, as they are stored. */
export function* recordBytes(page: readonly StoredRecord[]): Generator<Uint8Array> {
  for (const record of page) yield record.bytes;
}

/** A piece of an export. */
export function* pieceBytes(data: Uint8Array): Generator<Uint8Array> {
  yield toBinary(ExportChunkSchema, create(ExportChunkSchema, { data }));
}

/** How one turn replayed. */
export function* checkBytes(check: TurnCheck): Generator<Uint8Array> {
  yield toBinary(TurnCheckSchema, check);
}

/** The field of a SessionResponse that carries the cursor; clients that do not know it pass over it. */
const CURSOR_FIELD = 15_000;

/** A response of an interactive stream with its cursor. */
export function* responseBytes({ response, seq }: AgentResponse): Generator<Uint8Array> {
  const cursor = toBinary(StreamCursorSchema, create(StreamCursorSchema, { seq: BigInt(seq) }));
  yield new BinaryWriter()
    .raw(toBinary(SessionResponseSchema, response))
    .tag(CURSOR_FIELD, WireType.LengthDelimited)
    .bytes(cursor)
    .finish();
}

/** What a caller who is not let in is told in the conversation; undefined for what its status alone says. */
export function refusalBytes({ code, message }: HoldfastError): Uint8Array | undefined {
  if (code !== "unauthenticated") return undefined;
  return toBinary(
    SessionResponseSchema,
    create(SessionResponseSchema, { response: { case: "error", value: { code, message, retryable: false } } }),
  );
}

/** What happened in a team. */
export function* teamEventBytes(event: TeamEvent): Generator<Uint8Array> {
  yield toBinary(TeamEventSchema, event);
}
