/**
 * JSON as Go's `encoding/json` writes it, for the one text that the contract defines that way. It differs from RFC 8785 in three
 * things: HTML-safe escapes, map keys in the order of their UTF-8 bytes, and −0.
 */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Path } from "./path.ts";

/** Text that every JSON has as it is: ASCII without control characters, quotes, backslashes and what Go escapes. Ids and names are such. */
const PLAIN = /^[ !#-%'-;=?-[\]-~]*$/;
/** What Go escapes and JavaScript does not. */
const HTML_UNSAFE = /[<>&\u2028\u2029]/;
const EACH_HTML_UNSAFE = new RegExp(HTML_UNSAFE, "g");
const HTML_ESCAPES: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};

/** `text` as a Go JSON string. Refuses a lone surrogate; Go has no such string. */
export function goString(text: string, at: Path, name: string): string {
  if (typeof text === "string" && PLAIN.test(text)) return `"${text}"`;
  if (typeof text !== "string" || !text.isWellFormed()) throw at.refusal(name, "must be text without lone surrogates");
  const quoted = JSON.stringify(text);
  return HTML_UNSAFE.test(quoted) ? quoted.replace(EACH_HTML_UNSAFE, (char) => HTML_ESCAPES[char]!) : quoted;
}

/**
 * `value` as a Go float64: the shortest digits that read back, with an exponent where it is below −6 or from 21 on. JavaScript
 * writes the same, but for −0. `safe` refuses integers that doubles do not hold one by one.
 */
function goNumber(value: number, at: Path, safe: boolean): string {
  if (!Number.isFinite(value)) throw at.refusal("", "must be a finite number");
  if (safe && Number.isInteger(value) && !Number.isSafeInteger(value)) {
    throw at.refusal("", "must be an integer from -9007199254740991 to 9007199254740991; send a longer one as a string");
  }
  return Object.is(value, -0) ? "-0" : `${value}`;
}

/** A Struct as a Go `map[string]any`; `null` when absent. `safe` says which integers its numbers may be. */
export function goMap(object: JsonObject | undefined, at: Path, name: string, safe = false): string {
  return object === undefined ? "null" : goObject(object, at.child(name), safe);
}

function goObject(object: JsonObject, at: Path, safe: boolean): string {
  const keys = Object.keys(object).toSorted(compareUtf8);
  const entries = keys.map((key, index) => {
    const value = object[key]!;
    return `${goString(key, at, "")}:${goValue(value, at, key, index, safe)}`;
  });
  return `{${entries.join(",")}}`;
}

function goValue(value: JsonValue, at: Path, key: string, index: number, safe: boolean): string {
  switch (typeof value) {
    case "string":
      return goString(value, at.key(key, index), "");
    case "number":
      return goNumber(value, at.key(key, index), safe);
    case "boolean":
      return value ? "true" : "false";
    case "object": {
      if (value === null) return "null";
      const inside = at.key(key, index).child("");
      if (!Array.isArray(value)) return goObject(value, inside, safe);
      return `[${Array.from(value, (item, position) => goValue(item, inside, "", position, safe)).join(",")}]`;
    }
    default:
      throw at.key(key, index).refusal("", "must be a JSON value");
  }
}

/** A Go `map[string]string`; `null` when absent or empty, which the wire cannot tell apart. */
export function goStringMap(map: Readonly<Record<string, string>> | undefined, at: Path, name: string): string {
  const keys = map === undefined ? [] : Object.keys(map).toSorted(compareUtf8);
  if (map === undefined || keys.length === 0) return "null";
  const inside = at.child(name);
  const entries = keys.map((key, index) => `${goString(key, inside, "")}:${goString(map[key]!, inside.key(key, index), "")}`);
  return `{${entries.join(",")}}`;
}

/**
 * Orders strings by their UTF-8 bytes. JavaScript orders by UTF-16 code units, which is the same except that surrogates, which
 * stand for the highest code points, sort below U+E000 to U+FFFF.
 */
export function compareUtf8(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const a = left.charCodeAt(index);
    const b = right.charCodeAt(index);
    if (a !== b) return isSurrogate(a) === isSurrogate(b) ? a - b : isSurrogate(a) ? 1 : -1;
  }
  return left.length - right.length;
}

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff;
}
