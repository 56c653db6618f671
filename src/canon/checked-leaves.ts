/**
 * The leaves of a message on their way into the journal: each is checked and returned as it is to be recorded. The types say
 * what a value should be; a harness written in JavaScript may send another, so each is looked at.
 */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { isTimestampInRange, TIMESTAMP_SECONDS_MIN } from "./json-text.ts";
import { setOwn } from "./own-keys.ts";
import { MESSAGE_DEPTH_MAX, type Path } from "./path.ts";

/**
 * What becomes of a lone surrogate: refused in what a caller asks, replaced by U+FFFD in what a provider or a tool sent, which
 * nobody can ask to do better.
 */
export type Surrogates = "refuse" | "replace";

/** What a Struct's numbers may be: any finite one, or integers only as far as doubles hold each of them. */
export type Integers = "any" | "safe";

/** `text` with every lone surrogate replaced by U+FFFD. */
export function replaceLoneSurrogates(text: string): string {
  return text.toWellFormed();
}

export function textOf(value: string, at: Path, name: string, surrogates: Surrogates): string {
  if (typeof value !== "string") throw at.refusal(name, "must be a string");
  if (value.isWellFormed()) return value;
  if (surrogates === "replace") return replaceLoneSurrogates(value);
  throw at.refusal(name, "must not hold a lone surrogate");
}

export function int32Of(value: number, at: Path, name: string): number {
  if (!Number.isInteger(value) || value < -0x8000_0000 || value > 0x7fff_ffff) {
    throw at.refusal(name, "must be a whole number from -2147483648 to 2147483647");
  }
  return value;
}

export function int64Of(value: bigint, at: Path, name: string): bigint {
  if (typeof value !== "bigint" || BigInt.asIntN(64, value) !== value) {
    throw at.refusal(name, "must be a bigint from -9223372036854775808 to 9223372036854775807");
  }
  return value;
}

export function boolOf(value: boolean, at: Path, name: string): boolean {
  if (typeof value !== "boolean") throw at.refusal(name, "must be true or false");
  return value;
}

export function isList(value: unknown): boolean {
  return Array.isArray(value);
}

/** A copy: what is recorded must not change when its sender writes on in its own buffer. */
export function bytesOf(value: Uint8Array, at: Path, name: string): Uint8Array {
  if (!(value instanceof Uint8Array)) throw at.refusal(name, "must be bytes");
  // A Node Buffer is a Uint8Array whose `slice` would share memory.
  return new Uint8Array(value);
}

/** The number of a known enum value; any other is the unspecified one, 0. */
export function enumOf<Value extends number>(value: Value, unspecified: Value, max: number, at: Path, name: string): Value {
  const number = int32Of(value, at, name);
  return number < 0 || number > max ? unspecified : value;
}

/** Undefined for the zero time of year 1, which the contract's reference takes for "no time". */
export function timestampOf(ts: Timestamp, at: Path, name: string): Timestamp | undefined {
  const seconds = int64Of(ts.seconds, at, `${name}.seconds`);
  const nanos = int32Of(ts.nanos, at, `${name}.nanos`);
  if (!isTimestampInRange(seconds, nanos)) {
    throw at.refusal(name, "must be from 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z, with nanos from 0 to 999999999");
  }
  if (Number(seconds) === TIMESTAMP_SECONDS_MIN && nanos === 0) return undefined;
  return { $typeName: "google.protobuf.Timestamp", seconds, nanos };
}

/** A copy of a `map<string, string>`. */
export function textMapOf(map: Readonly<Record<string, string>>, at: Path, surrogates: Surrogates): Record<string, string> {
  const copy: Record<string, string> = {};
  for (const [position, key] of Object.keys(map).entries()) {
    setOwn(copy, keyOf(key, position, at, surrogates), textOf(map[key]!, at.key(key, position), "", surrogates));
  }
  return copy;
}

/** A deep copy of the Struct in field `name`. */
export function structOf(object: JsonObject, at: Path, name: string, surrogates: Surrogates, integers: Integers): JsonObject {
  if (!isPlainObject(object)) throw at.refusal(name, "must be a JSON object");
  return objectOf(object, at.child(name), surrogates, integers);
}

function objectOf(object: JsonObject, at: Path, surrogates: Surrogates, integers: Integers): JsonObject {
  const keys = Object.keys(object);
  if (keys.length > 0) refuseFull(at);
  const copy: JsonObject = {};
  for (let position = 0; position < keys.length; position++) {
    const key = keys[position]!;
    const value = object[key]!;
    const scalar = value === null ? null : scalarOf(value, surrogates, integers);
    const held = scalar === undefined ? containerOf(value, at.key(key, position), surrogates, integers) : scalar;
    setOwn(copy, keyOf(key, position, at, surrogates), held);
  }
  return copy;
}

function listOf(values: readonly JsonValue[], at: Path, surrogates: Surrogates, integers: Integers): JsonValue[] {
  if (values.length > 0) refuseFull(at);
  // Array.from visits holes, which have no JSON form; `map` would pass over them.
  return Array.from(values, (value, index) => {
    if (value === null) return null;
    return scalarOf(value, surrogates, integers) ?? containerOf(value, at.child("", index), surrogates, integers);
  });
}

/** The values of a Struct or list are messages, too. */
function refuseFull(at: Path): void {
  if (at.depth >= MESSAGE_DEPTH_MAX) at.child("");
}

/** `value` as it is recorded, for the common values that need no path; undefined where there is more to do or to refuse. */
function scalarOf(value: JsonValue, surrogates: Surrogates, integers: Integers): string | number | boolean | undefined {
  switch (typeof value) {
    case "string":
      if (value.isWellFormed()) return value;
      return surrogates === "replace" ? replaceLoneSurrogates(value) : undefined;
    case "number":
      return isNumberAllowed(value, integers) ? value : undefined;
    case "boolean":
      return value;
    default:
      return undefined;
  }
}

function isNumberAllowed(value: number, integers: Integers): boolean {
  if (!Number.isFinite(value)) return false;
  return integers === "any" || !Number.isInteger(value) || Number.isSafeInteger(value);
}

function containerOf(value: JsonValue, at: Path, surrogates: Surrogates, integers: Integers): JsonValue {
  if (Array.isArray(value)) return listOf(value, at.child(""), surrogates, integers);
  if (isPlainObject(value)) return objectOf(value, at.child(""), surrogates, integers);
  if (typeof value === "string") throw at.refusal("", "must not hold a lone surrogate");
  if (typeof value !== "number") throw at.refusal("", "must be null, a boolean, a number, a string, a list or a plain object");
  if (!Number.isFinite(value)) throw at.refusal("", "must be a finite number");
  throw at.refusal("", "must be an integer from -9007199254740991 to 9007199254740991; send a longer one as a string");
}

function keyOf(key: string, position: number, at: Path, surrogates: Surrogates): string {
  if (key.isWellFormed()) return key;
  if (surrogates === "replace") return replaceLoneSurrogates(key);
  throw at.key(key, position).refusal("", "must not have a lone surrogate in its key");
}

/** Plain objects only: a Date, a Map or an instance of a class has no JSON form that its reader would expect. */
function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  // A plain object of another realm (a VM context) has that realm's Object.prototype, which has no prototype itself.
  return Object.getPrototypeOf(prototype) === null;
}
