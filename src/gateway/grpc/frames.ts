/** Frames of live streams as bytes. A record's stored bytes are wrapped, never decoded. */

import { create, toBinary } from "@bufbuild/protobuf";
import { ExecUpdateSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { ExportChunkSchema } from "../../gen/holdfast/v1/export_pb.ts";
import { TurnCheckSchema, type TurnCheck } from "../../gen/holdfast/v1/replay_pb.ts";
import { wrapRecord } from "../../grpc/index.ts";
import type { StoredRecord } from "../../journal/index.ts";
import type { StreamItem } from "../../service/contract.ts";

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
