/**
 * Frames as JSON, as they pass the door of a VM. JSON has neither bytes nor 64-bit integers, so an object with one key stands for them:
 * `{"$n":"12"}` is the bigint 12, `{"$n":"NaN"}` a number that JSON has no word for (NaN, both infinities, -0), `{"$b":"aGk="}` the bytes in base64, and `{"$o":{…}}` an object that would otherwise look like one of the
 * three. The guest's half is in `guest/door.ts`.
 *
 * Invariants:
 * - What comes from a guest is bounded in size and in nesting before it is parsed, and is only believed once the schema has encoded it.
 * - Text that is no frame is a value of this module's own error, never another exception.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import { HarnessFrameSchema, HostFrameSchema } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import type { HostFrameInit } from "../../harness-wire/index.ts";

/** A value of JSON. */
type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A value of JSON once its tags were resolved. */
type Plain = null | boolean | number | string | bigint | Uint8Array | Plain[] | { [key: string]: Plain };

/** The text of a host's frame. */
export function hostFrameText(frame: HostFrameInit): string {
  return JSON.stringify(tagged(create(HostFrameSchema, frame)));
}

/** What of the bounds matters here. */
export interface FrameBounds {
  readonly frameChars: number;
  readonly frameDepth: number;
}

/**
 * The protobuf bytes of a harness's frame. Throws RESOURCE_EXHAUSTED for one that is too large or too deep, INVALID_ARGUMENT for what is
 * no frame.
 */
export function harnessFrameBytes(text: string, bounds: FrameBounds): Uint8Array {
  if (text.length > bounds.frameChars) throw tooLarge(bounds);
  if (depthExceeds(text, bounds.frameDepth)) {
    throw new HoldfastError("resource_exhausted", `the harness sent a frame that is nested deeper than ${bounds.frameDepth}`);
  }
  try {
    const init = resolved(JSON.parse(text) as Json);
    if (init === null || typeof init !== "object" || Array.isArray(init) || init instanceof Uint8Array) throw new TypeError("no object");
    return toBinary(HarnessFrameSchema, create(HarnessFrameSchema, init), { writeUnknownFields: false });
  } catch (cause) {
    throw new HoldfastError("invalid_argument", "the harness sent what is no frame of the harness wire", { cause });
  }
}

/** The error of a frame that is larger than it may be. */
export function tooLarge({ frameChars }: Pick<FrameBounds, "frameChars">): HoldfastError {
  return new HoldfastError("resource_exhausted", `a frame of the harness wire is larger than ${frameChars} characters`);
}

/** Whether brackets are nested deeper than `most`, whatever else is wrong with the text. */
export function depthExceeds(text: string, most: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (isInString) {
      if (code === BACKSLASH) index++;
      else if (code === QUOTE) isInString = false;
    } else if (code === QUOTE) isInString = true;
    else if (code === BRACKET_OPEN || code === BRACE_OPEN) {
      if (++depth > most) return true;
    } else if (code === BRACKET_CLOSE || code === BRACE_CLOSE) depth--;
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;

/** A message, or a part of one, as JSON with tags. What is absent stays absent. */
function tagged(value: unknown): Json {
  switch (typeof value) {
    case "bigint":
      return { $n: value.toString() };
    case "object": {
      if (value === null) return null;
      if (value instanceof Uint8Array) return { $b: Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64") };
      if (Array.isArray(value)) return value.map(tagged);
      return taggedObject(value);
    }
    case "number":
      if (Number.isFinite(value) && !Object.is(value, -0)) return value;
      return { $n: value === 0 ? "-0" : `${value}` };
    case "string":
    case "boolean":
      return value;
    default:
      throw new TypeError(`a frame holds a ${typeof value}`);
  }
}

function taggedObject(value: object): Json {
  const object: { [key: string]: Json } = {};
  const keys: string[] = [];
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined || key === "$unknown") continue;
    keys.push(key);
    define(object, key, tagged(item));
  }
  return looksTagged(keys) ? { $o: object } : object;
}

function looksTagged(keys: readonly string[]): boolean {
  return keys.length === 1 && (keys[0] === "$n" || keys[0] === "$b" || keys[0] === "$o");
}

function resolved(value: Json): Plain {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(resolved);
  const keys = Object.keys(value);
  if (!looksTagged(keys)) return resolvedObject(value);
  const inner = value[keys[0]!]!;
  if (keys[0] === "$n" && typeof inner === "string" && WORDLESS.has(inner)) return Number(inner);
  if (keys[0] === "$n" && typeof inner === "string" && INTEGER.test(inner)) return BigInt(inner);
  if (keys[0] === "$b" && typeof inner === "string") return new Uint8Array(Buffer.from(inner, "base64"));
  if (keys[0] === "$o" && inner !== null && typeof inner === "object" && !Array.isArray(inner)) return resolvedObject(inner);
  throw new TypeError("an object that stands for a value does not hold one");
}

/** Numbers that JSON has no word for. */
const WORDLESS: ReadonlySet<string> = new Set(["NaN", "Infinity", "-Infinity", "-0"]);

/** 64 bits have at most 20 digits; a longer one would only cost time. */
const INTEGER = /^-?\d{1,20}$/;

function resolvedObject(value: { readonly [key: string]: Json }): Plain {
  const object: { [key: string]: Plain } = {};
  for (const [key, item] of Object.entries(value)) define(object, key, resolved(item));
  return object;
}

/** Sets a key as it is, also `__proto__`. */
function define<T>(object: { [key: string]: T }, key: string, value: T): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  else object[key] = value;
}
