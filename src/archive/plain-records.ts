/**
 * Records by themselves, as `replay --json` prints them: on lines, or in one JSON document.
 *
 * Invariant: they are held to the form in which exports have them, so that no file is intact here that another verifier refuses. Every
 * function throws INVALID_ARGUMENT about the file.
 */

import type { JsonValue } from "@bufbuild/protobuf";
import type { LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { malformed, readingAt } from "./item.ts";
import { strictJson } from "./json-text.ts";
import type { Line } from "./line-reader.ts";
import { pinnedRecord } from "./record-json.ts";

/** The record on a line. */
export function recordOfLine({ text, where }: Line): LogRecord {
  const json = strictJson(text, where);
  return readingAt(where, () => pinnedRecord(json));
}

/**
 * The records of a JSON document: a list of them, or an object that has them under `records`. Undefined where it is neither. A document
 * that cannot be trusted as a whole throws at once, a record of it in its turn.
 */
export function recordsOfDocument(bytes: Uint8Array): Iterable<LogRecord> | undefined {
  const document = strictJson(textOf(bytes), "");
  const isObject = typeof document === "object" && document !== null && !Array.isArray(document);
  const records: JsonValue | undefined = isObject ? document["records"] : document;
  return Array.isArray(records) ? readEach(records) : undefined;
}

function* readEach(records: readonly JsonValue[]): Generator<LogRecord, void, void> {
  for (const [index, json] of records.entries()) yield readingAt(`record ${index + 1}`, () => pinnedRecord(json));
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw malformed("", "is no UTF-8", error);
  }
}
