/**
 * The leaves of canonical text (RFC 8785): strings, numbers, base64, timestamps and plain JSON values.
 *
 * Invariants:
 * - What has no JSON form is refused here, whoever calls: a lone surrogate, NaN, an infinity, a timestamp out of range.
 * - Keys are sorted by UTF-16 code units, which is how JavaScript compares strings.
 */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { invalidArgument, type HoldfastError } from "../base/errors.ts";

/** What canonical text refuses. It names no field: `normaliseEvent` does that, before anything is recorded. */
export function noCanonicalForm(what: string): HoldfastError {
  return invalidArgument("event", `has no canonical form: it holds ${what}`);
}

/** `text` as a JSON string with the fewest escapes. JavaScript's own form is the one that RFC 8785 asks for. */
export function stringText(text: string): string {
  const quoted = JSON.stringify(text);
  // JavaScript escapes a lone surrogate, so text that needed no escape has none.
  if (quoted.length !== text.length + 2 && !text.isWellFormed()) throw noCanonicalForm("a lone surrogate");
  return quoted;
}

/** `value` in ECMAScript's number form; −0 is `0`. */
export function numberText(value: number): string {
  if (!Number.isFinite(value)) throw noCanonicalForm("a number that is not finite");
  return `${value}`;
}

/** A plain JSON value as canonical text. */
export function valueText(value: JsonValue): string {
  switch (typeof value) {
    case "string":
      return stringText(value);
    case "number":
      return numberText(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? listText(value) : objectText(value);
    default:
      throw noCanonicalForm(`a value of type ${typeof value}`);
  }
}

function listText(values: readonly JsonValue[]): string {
  let text = "";
  for (const value of values) text += text === "" ? valueText(value) : `,${valueText(value)}`;
  return `[${text}]`;
}

/** A JSON object as canonical text. */
export function objectText(object: JsonObject): string {
  let text = "";
  for (const key of sortedKeys(object)) {
    const entry = `${stringText(key)}:${valueText(object[key]!)}`;
    text += text === "" ? entry : `,${entry}`;
  }
  return `{${text}}`;
}

/** The keys of a map or object in canonical order. */
export function sortedKeys(object: Readonly<Record<string, unknown>>): string[] {
  const keys = Object.keys(object);
  // Comparing costs less than sorting what is in order already, which most objects of one or two keys are.
  return keys.length < 2 || (keys.length === 2 && keys[0]! < keys[1]!) ? keys : keys.toSorted();
}

const BASE64 = new TextEncoder().encode("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
const PAD = 61;
const ASCII = new TextDecoder();

/** `bytes` in standard base64 with padding. */
export function base64(bytes: Uint8Array): string {
  const out = new Uint8Array(4 * Math.ceil(bytes.length / 3));
  let at = 0;
  for (let index = 0; index < bytes.length; index += 3) {
    // Reading past the end gives undefined, which the shifts below take as zero bits.
    const three = (bytes[index]! << 16) | (bytes[index + 1]! << 8) | bytes[index + 2]!;
    out[at++] = BASE64[three >>> 18]!;
    out[at++] = BASE64[(three >>> 12) & 63]!;
    out[at++] = BASE64[(three >>> 6) & 63]!;
    out[at++] = BASE64[three & 63]!;
  }
  const rest = bytes.length % 3;
  if (rest !== 0) out[at - 1] = PAD;
  if (rest === 1) out[at - 2] = PAD;
  return ASCII.decode(out);
}

/** Seconds since the epoch of 0001-01-01T00:00:00Z, the earliest time that has a JSON form. */
export const TIMESTAMP_SECONDS_MIN = -62_135_596_800;
/** Seconds since the epoch of 9999-12-31T23:59:59Z, the latest. */
export const TIMESTAMP_SECONDS_MAX = 253_402_300_799;
const DAY_SECONDS = 86_400;

/** Whether a Timestamp has a JSON form. */
export function isTimestampInRange(seconds: bigint, nanos: number): boolean {
  const whole = Number(seconds);
  if (whole < TIMESTAMP_SECONDS_MIN || whole > TIMESTAMP_SECONDS_MAX) return false;
  return Number.isInteger(nanos) && nanos >= 0 && nanos <= 999_999_999;
}

/** A Timestamp in RFC 3339, in UTC, with 0, 3, 6 or 9 fraction digits; quoted. */
export function timestampText(seconds: bigint, nanos: number): string {
  if (!isTimestampInRange(seconds, nanos)) throw noCanonicalForm("a timestamp out of range");
  const whole = Number(seconds);
  const days = Math.floor(whole / DAY_SECONDS);
  const second = whole - days * DAY_SECONDS;
  const time = `${two(Math.floor(second / 3600))}:${two(Math.floor(second / 60) % 60)}:${two(second % 60)}`;
  return `"${dateText(days)}T${time}${fractionText(nanos)}Z"`;
}

function two(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}

function fractionText(nanos: number): string {
  if (nanos === 0) return "";
  if (nanos % 1_000_000 === 0) return `.${`${nanos / 1_000_000}`.padStart(3, "0")}`;
  if (nanos % 1_000 === 0) return `.${`${nanos / 1_000}`.padStart(6, "0")}`;
  return `.${`${nanos}`.padStart(9, "0")}`;
}

/**
 * The date that is `days` days after 1970-01-01, in the proleptic Gregorian calendar. Years are counted from March here, so
 * that the leap day is the last day of its year, and in eras of 400 years, which are all equally long.
 */
function dateText(days: number): string {
  const sinceEra0 = days + 719_468;
  const era = Math.floor(sinceEra0 / 146_097);
  const dayOfEra = sinceEra0 - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1;
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${`${year}`.padStart(4, "0")}-${two(month)}-${two(day)}`;
}
