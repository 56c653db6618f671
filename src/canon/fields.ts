/**
 * The fields of protobuf messages, written one by one into one writer.
 *
 * Invariant: a message's fields are written in descending order of their numbers, since the writer goes from the end to the beginning; what
 * has its default value is left out.
 */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "../base/errors.ts";
import { BackWriter } from "./back-writer.ts";

export const VARINT = 0;
const FIXED64 = 1;
export const LENGTH = 2;

/** One writer for all: encoding is synchronous, and a refused message leaves nothing that `begin` does not drop. */
export const writer = new BackWriter();

/** The bytes of what `write` writes of a value. The caller owns them. */
export function encoded<T>(value: T, write: (value: T) => void): Uint8Array {
  writer.begin();
  write(value);
  return writer.finish();
}

export function message<T>(field: number, value: T, write: (value: T) => void): void {
  const mark = writer.mark();
  write(value);
  writer.close((field << 3) | LENGTH, mark);
}

/** A list's entries, the last one first. */
export function messages<T>(field: number, values: readonly T[], write: (value: T) => void): void {
  for (let index = values.length - 1; index >= 0; index--) message(field, values[index]!, write);
}

export function string(field: number, value: string): void {
  if (value !== "") writer.string((field << 3) | LENGTH, value);
}

export function int32(field: number, value: number): void {
  if (value !== 0) writer.int32((field << 3) | VARINT, value);
}

export function int64(field: number, value: bigint): void {
  if (value !== 0n) writer.int64((field << 3) | VARINT, value);
}

export function bool(field: number, value: boolean): void {
  if (value) writer.bool((field << 3) | VARINT, true);
}

export function struct(field: number, value: JsonObject | undefined): void {
  if (value !== undefined) message(field, value, writeStruct);
}

function writeStruct(object: JsonObject): void {
  const keys = Object.keys(object);
  for (let index = keys.length - 1; index >= 0; index--) {
    const key = keys[index]!;
    const mark = writer.mark();
    message(2, object[key]!, writeValue);
    writer.string((1 << 3) | LENGTH, key);
    writer.close((1 << 3) | LENGTH, mark);
  }
}

function writeValue(value: JsonValue): void {
  switch (typeof value) {
    case "number":
      return writer.double((2 << 3) | FIXED64, value);
    case "string":
      return writer.string((3 << 3) | LENGTH, value);
    case "boolean":
      return writer.bool((4 << 3) | VARINT, value);
    case "object":
      if (value === null) return writer.natural((1 << 3) | VARINT, 0);
      return Array.isArray(value) ? message(6, value, (values) => messages(1, values, writeValue)) : message(5, value, writeStruct);
    default:
      throw invalidArgument("event", `holds a value of type ${typeof value}, which is no JSON`);
  }
}
