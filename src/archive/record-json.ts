/**
 * Records as proto3 JSON and back.
 *
 * Invariant: what is read is, byte for byte, what was written. Where the JSON alone would not give the same bytes (another writer's
 * order of keys, the sign of a zero), they stand beside it, and must say the same.
 */

import { fromJson, toJson, type JsonValue } from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { isSameBytes } from "../base/bytes.ts";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { fenceOf, seqOf } from "../base/ids.ts";
import { canonicalEvent, canonicalJson, encodeLogRecord, readLogRecord } from "../canon/index.ts";
import { LogRecordSchema, type Event, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";

const OPTIONS = { useProtoFieldName: true };

/** The JSON text of a record, and its bytes where the text does not give them. */
export interface RecordText {
  readonly record: string;
  readonly bytes: string | undefined;
}

/** A committed record as JSON. Throws DATA_LOSS for bytes that are no record or have no JSON form. */
export function recordTextOf(bytes: Uint8Array): RecordText {
  const json = jsonOf(bytes);
  if (json === undefined) throw new HoldfastError("data_loss", "record: it cannot be read, so it cannot be exported as JSON");
  const record = JSON.stringify(json);
  const isExact = isSameBytes(bytesOfOwnJson(record), bytes);
  return { record, bytes: isExact ? undefined : base64Encode(bytes) };
}

function bytesOfOwnJson(record: string): Uint8Array {
  try {
    return bytesOfJson(JSON.parse(record) as JsonValue);
  } catch (error) {
    throw new HoldfastError("data_loss", "record: it has no canonical form, so it cannot be exported as JSON", { cause: error });
  }
}

/**
 * The bytes of a record from its JSON and, where these stand beside it, its bytes. Throws INVALID_ARGUMENT where they say different things;
 * the order of keys says nothing.
 */
export function recordBytesOf(record: JsonValue, bytes: Uint8Array | undefined): Uint8Array {
  if (bytes === undefined) return bytesOfJson(record);
  const json = jsonOf(bytes);
  if (json === undefined || canonicalJson(json) !== canonicalJson(record))
    throw invalidArgument("log_record", "must be the encoding of record");
  return bytes;
}

function bytesOfJson(json: JsonValue): Uint8Array {
  const { seq, prevHash, contentHash, fence, event } = pinnedRecord(json);
  return encodeLogRecord({ seq: seqOf(seq), prevHash, contentHash, fence: fenceOf(fence), event });
}

/** A record that holds an event. */
export type PinnedRecord = LogRecord & { readonly event: Event };

/** The record in `json`, which must be in the pinned form. Throws INVALID_ARGUMENT where it is not, or holds no record. */
export function pinnedRecord(json: JsonValue): PinnedRecord {
  const record = fromJson(LogRecordSchema, json);
  const { event } = record;
  if (event === undefined) throw invalidArgument("record", "must hold an event");
  requirePinned(json, record, event);
  return { ...record, event };
}

const FIELDS: readonly string[] = ["seq", "prev_hash", "content_hash", "fence", "event"];

/**
 * The library reads more forms than are written: camelCase names, numbers for texts, defaults. Such a record could say one thing to it
 * and another to a verifier that hashes the JSON as it stands.
 */
function requirePinned(json: JsonValue, { seq, prevHash, contentHash, fence }: LogRecord, event: Event): void {
  const members = typeof json === "object" && json !== null && !Array.isArray(json) ? json : {};
  // What is left out has its default; null is another way to write that, which is not the pinned one.
  const held = { seq: "0", fence: "0", prev_hash: "", content_hash: "", ...members };
  const isPinned =
    Object.keys(members).every((name) => FIELDS.includes(name)) &&
    held.seq === `${seq}` &&
    held.fence === `${fence}` &&
    held.prev_hash === prevHash &&
    held.content_hash === contentHash &&
    canonicalJson(members["event"] ?? null) === canonicalEvent(event);
  if (!isPinned)
    throw invalidArgument("record", "must be written as exports write it: snake_case names, 64-bit integers as texts, no defaults");
}

/** The JSON of a record's bytes; undefined where they are no record, or one that has none. */
function jsonOf(bytes: Uint8Array): JsonValue | undefined {
  const reading = readLogRecord(bytes);
  if (reading.kind === "fault") return undefined;
  try {
    return toJson(LogRecordSchema, reading.record, OPTIONS);
  } catch {
    // A committed record has a canonical form, so it has this one; other bytes need not.
    return undefined;
  }
}
