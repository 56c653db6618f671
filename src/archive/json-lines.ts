/** An export as JSON lines: one object a line, its `kind` first. */

import { fromJson, toJson, type DescMessage, type JsonObject, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { invalidArgument } from "../base/errors.ts";
import { seqOf, sessionUidOf, type Seq } from "../base/ids.ts";
import { canonicalJson } from "../canon/index.ts";
import { ExportedSessionSchema, SignedHeadSchema } from "../gen/holdfast/v1/export_pb.ts";
import { exportedOf, factsOf } from "./facts.ts";
import { malformed, readingAt, type ArchiveItem } from "./item.ts";
import { strictJson } from "./json-text.ts";
import { recordBytesOf, recordTextOf } from "./record-json.ts";

const OPTIONS = { useProtoFieldName: true };
const FORMAT = "holdfast.export";

/** The line of an item, without its line feed. */
export function lineOf(item: ArchiveItem): string {
  switch (item.kind) {
    case "header":
      return JSON.stringify({ kind: "header", format: FORMAT, version: item.version });
    case "session":
      return JSON.stringify({ kind: "session", ...jsonObject(toJson(ExportedSessionSchema, exportedOf(item.facts), OPTIONS)) });
    case "record": {
      const { record, bytes } = recordTextOf(item.bytes);
      const beside = bytes === undefined ? "" : `,"log_record":"${bytes}"`;
      return `{"kind":"record","session":${JSON.stringify(item.session)},"record":${record}${beside}}`;
    }
    case "aside":
      return JSON.stringify({ kind: "aside", session: item.session, seq: `${item.seq}`, data: base64Encode(item.bytes) });
    case "head":
      return JSON.stringify({ kind: "head", ...jsonObject(toJson(SignedHeadSchema, item.head, OPTIONS)) });
    case "end":
      return JSON.stringify({ kind: "end", sessions: `${item.sessions}`, records: `${item.records}` });
  }
}

/** The item in a line. `where` is the line's place. Throws INVALID_ARGUMENT about the file. */
export function itemOfLine(line: string, where: string): ArchiveItem {
  const value = objectIn(line, where);
  return readingAt(where, () => itemOf(value, where));
}

function objectIn(line: string, where: string): JsonObject {
  const value = strictJson(line, where);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed(where, "is no JSON object");
  return value;
}

function itemOf({ kind, ...rest }: JsonObject, where: string): ArchiveItem {
  switch (kind) {
    case "header": {
      const { format, version } = only(rest, "format", "version");
      if (format !== FORMAT) throw malformed(where, "is the header of some other format");
      return { kind, version: typeof version === "number" ? version : 0 };
    }
    case "session":
      return { kind, facts: factsOf(pinned(ExportedSessionSchema, rest)) };
    case "record": {
      const { session, record, log_record: bytes } = only(rest, "session", "record", "log_record");
      if (record === undefined) throw invalidArgument("record", "must be there");
      return {
        kind,
        session: uidIn(session),
        bytes: recordBytesOf(record, bytes === undefined ? undefined : bytesIn(bytes, "log_record")),
      };
    }
    case "aside": {
      const { session, seq, data } = only(rest, "session", "seq", "data");
      return { kind, session: uidIn(session), seq: natural(seq, "seq") as Seq, bytes: bytesIn(data, "data") };
    }
    case "head":
      return { kind, head: pinned(SignedHeadSchema, rest) };
    case "end": {
      const { sessions, records } = only(rest, "sessions", "records");
      return { kind, sessions: natural(sessions, "sessions"), records: natural(records, "records") };
    }
    default:
      throw malformed(where, "is of no kind that an export has");
  }
}

/** The message in `json`, which must be written as exports write it: the library reads other forms too. */
function pinned<Desc extends DescMessage>(schema: Desc, json: JsonObject): MessageShape<Desc> {
  const message = fromJson(schema, json);
  if (canonicalJson(toJson(schema, message, OPTIONS)) === canonicalJson(json)) return message;
  throw invalidArgument("kind", "must be followed by the fields of its message, written as exports write them");
}

/** The members of `object`, of which there are no others than these. */
function only(object: JsonObject, ...names: readonly string[]): JsonObject {
  for (const name of Object.keys(object)) if (!names.includes(name)) throw invalidArgument(name, "is nothing that a line of this kind has");
  return object;
}

function uidIn(value: JsonValue | undefined) {
  return sessionUidOf(text(value, "session"));
}

function text(value: JsonValue | undefined, field: string): string {
  if (typeof value !== "string") throw invalidArgument(field, "must be a string");
  return value;
}

function bytesIn(value: JsonValue | undefined, field: string): Uint8Array {
  const encoded = text(value, field);
  const bytes = base64Decode(encoded);
  if (base64Encode(bytes) !== encoded) throw invalidArgument(field, "must be standard base64 with padding");
  return bytes;
}

function natural(value: JsonValue | undefined, field: string): number {
  const digits = text(value, field);
  if (!/^(0|[1-9]\d{0,15})$/.test(digits)) throw invalidArgument(field, "must be a whole number in a string");
  return seqOf(BigInt(digits), field);
}

function jsonObject(value: JsonValue): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
