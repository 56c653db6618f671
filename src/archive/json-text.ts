/**
 * JSON that says the same to every reader.
 *
 * Invariant: it is read without recursion and in linear time, so that no text, however long or deep, takes the stack.
 */

import type { JsonValue } from "@bufbuild/protobuf";
import { malformed } from "./item.ts";
import { JSON_DEPTH_MAX } from "./limits.ts";

/**
 * The value of a JSON text. Throws INVALID_ARGUMENT about the file, at the place `where`, for what is no JSON, what is nested deeper than
 * any record is, and what one reader may see otherwise than another.
 */
export function strictJson(text: string, where: string): JsonValue {
  if (isTooDeep(text)) throw malformed(where, "is nested too deeply");
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw malformed(where, "is no JSON", error);
  }
  // What is written by us is what the parser's value prints as; anything else is looked at more closely.
  const doubt = JSON.stringify(value) === text ? undefined : doubtIn(text);
  if (doubt !== undefined) throw malformed(where, doubt);
  return value;
}

/** Whether more lists and objects are open somewhere in `text` than in any line that is written. `text` need not be JSON. */
export function isTooDeep(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at) - 1;
    else if (code === OBJECT || code === LIST) depth += 1;
    else if (code === OBJECT_END || code === LIST_END) depth -= 1;
    if (depth > JSON_DEPTH_MAX) return true;
  }
  return false;
}

/**
 * What in a valid JSON `text` one reader may see otherwise than another: a key that occurs twice (a parser keeps the last, a person
 * may see the first), or a number that is rounded, or could be, when it is read. Undefined when there is nothing of the kind.
 */
export function doubtIn(text: string): string | undefined {
  // The keys of the objects and lists that are open; a list has none.
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0, end = 0; at < text.length; at = end) {
    const code = text.charCodeAt(at);
    end = at + 1;
    if (code === OBJECT) open.push(new Set());
    else if (code === LIST) open.push(undefined);
    else if (code === OBJECT_END || code === LIST_END) open.pop();
    else if (code === QUOTE) {
      end = stringEnd(text, at);
      if (isKey(text, end) && isRepeated(text.slice(at, end), open.at(-1))) return "has a key twice";
    } else if (isOfNumber(code)) {
      while (isOfNumber(text.charCodeAt(end)) || isExponent(text.charCodeAt(end))) end += 1;
      const token = text.slice(at, end);
      if (String(Number(token)) !== token) return "has a number that its readers may round";
    }
  }
  return undefined;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
const LIST = 0x5b;
const LIST_END = 0x5d;

/** Where the string ends that begins at `start`; the end of the text where it never does. */
function stringEnd(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (first - 1 > start && text.charCodeAt(first - 1) === BACKSLASH) first -= 1;
    // An odd number of backslashes escapes the quote.
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}

function isKey(text: string, end: number): boolean {
  let at = end;
  while (isJsonSpace(text.charCodeAt(at))) at += 1;
  return text.charCodeAt(at) === COLON;
}

function isRepeated(token: string, keys: Set<string> | undefined): boolean {
  const key: unknown = JSON.parse(token);
  if (keys === undefined || typeof key !== "string") return false;
  if (keys.has(key)) return true;
  keys.add(key);
  return false;
}

/** Space, tab, line feed, carriage return: the white space of JSON, which is not that of Unicode. */
export function isJsonSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d;
}

/** A digit, a sign or a point. */
function isOfNumber(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2b || code === 0x2e;
}

function isExponent(code: number): boolean {
  return code === 0x65 || code === 0x45;
}
