/**
 * From proto3 JSON to messages, with errors that name the field.
 *
 * The library decodes; only when it refuses is the JSON walked to find out where. That walk reads every value once, so that a
 * hostile body costs no more than a good one.
 */

import { fromJson, fromJsonString, ScalarType } from "@bufbuild/protobuf";
import type { DescField, DescMessage, JsonObject, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { invalidArgument, type HoldfastError } from "../../base/errors.ts";

/** How deep the search for the wrong field goes; a fault further down is reported at this depth. */
const DEPTH_MAX = 32;
/** How much of an unknown key an error repeats. */
const KEY_CHARS_MAX = 64;

/**
 * The message in `text`; the empty text is the empty message. Original and camelCase field names are read. Throws
 * INVALID_ARGUMENT that names the field which is unknown or has the wrong type.
 */
export function decodeJsonText<Desc extends DescMessage>(schema: Desc, text: string): MessageShape<Desc> {
  if (text.trim() === "") return fromJson(schema, {});
  const json = parse(text);
  if (!isObject(json)) throw invalidArgument("body", "must be a JSON object");
  try {
    return fromJsonString(schema, text);
  } catch (error) {
    const fault = faultIn(schema, json, "", 0);
    if (fault !== undefined) throw fault;
    throw invalidArgument("body", `cannot be read as ${schema.typeName}: a key is given twice, or it is nested too deeply`, {
      cause: error,
    });
  }
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw invalidArgument("body", "must be JSON", { cause: error });
  }
}

/** The first fault of an object that is to be a message; undefined when each of its fields can be read. */
function faultIn(schema: DescMessage, json: JsonValue, path: string, depth: number): HoldfastError | undefined {
  if (!isObject(json)) return invalidArgument(path, "must be a JSON object");
  const seen = new Map<string, string>();
  for (const [key, value] of Object.entries(json)) {
    const field = schema.fields.find((candidate) => candidate.name === key || candidate.jsonName === key);
    if (field === undefined) return invalidArgument(join(path, shown(key)), `is not a field of ${schema.typeName}`);
    const at = join(path, field.name);
    const group = field.oneof === undefined ? field.name : field.oneof.name;
    const earlier = seen.get(group);
    if (earlier !== undefined && value !== null) return invalidArgument(at, `must not be given together with ${earlier}`);
    seen.set(group, field.name);
    const fault = faultOfField(schema, field, key, value, at, depth);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Goes into messages, and has the library read only what has none inside: so every value is read once, however deep it is. */
function faultOfField(
  schema: DescMessage,
  field: DescField,
  key: string,
  value: JsonValue,
  at: string,
  depth: number,
): HoldfastError | undefined {
  if (value !== null && depth < DEPTH_MAX && field.message !== undefined && isPlain(field.message)) {
    if (field.fieldKind === "message") return faultIn(field.message, value, at, depth + 1);
    if (field.fieldKind === "list" && Array.isArray(value)) {
      for (const [index, element] of value.entries()) {
        const fault = faultIn(field.message, element, `${at}[${index}]`, depth + 1);
        if (fault !== undefined) return fault;
      }
      return undefined;
    }
  }
  if (reads(schema, key, value)) return undefined;
  if (field.fieldKind === "list" && Array.isArray(value)) {
    const index = value.findIndex((element) => !reads(schema, key, [element]));
    if (index >= 0) return invalidArgument(`${at}[${index}]`, `must be ${elementExpectation(field)}`);
  }
  return invalidArgument(at, `must be ${expectation(field)}`);
}

function reads(schema: DescMessage, key: string, value: JsonValue): boolean {
  try {
    fromJson(schema, { [key]: value });
    return true;
  } catch {
    return false;
  }
}

/** Whether a message is an object of its own fields in JSON; the well-known types have forms of their own. */
function isPlain(message: DescMessage): boolean {
  return !message.typeName.startsWith("google.protobuf.");
}

function expectation(field: DescField): string {
  switch (field.fieldKind) {
    case "list":
      return `a list, each element ${elementExpectation(field)}`;
    case "map":
      return field.mapKind === "scalar" ? `a JSON object whose values are ${scalarExpectation(field.scalar)}` : "a JSON object";
    case "scalar":
      return scalarExpectation(field.scalar);
    case "enum":
      return `one of ${field.enum.values.map((value) => value.name).join(", ")}`;
    case "message":
      return messageExpectation(field.message);
  }
}

function elementExpectation(field: DescField & { fieldKind: "list" }): string {
  switch (field.listKind) {
    case "scalar":
      return scalarExpectation(field.scalar);
    case "enum":
      return `one of ${field.enum.values.map((value) => value.name).join(", ")}`;
    case "message":
      return messageExpectation(field.message);
  }
}

function messageExpectation(message: DescMessage): string {
  return message.typeName === "google.protobuf.Timestamp" ? "an RFC 3339 time such as 2026-01-31T12:00:00Z" : "a JSON object";
}

function scalarExpectation(scalar: ScalarType): string {
  switch (scalar) {
    case ScalarType.STRING:
      return "a string without lone surrogates";
    case ScalarType.BOOL:
      return "true or false";
    case ScalarType.BYTES:
      return "a base64 string";
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return "a number";
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return "a whole number of 32 bits";
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return "a whole number of 32 bits, not negative";
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return "a whole number of 64 bits (a string, or a number below 2^53)";
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return "a whole number of 64 bits, not negative (a string, or a number below 2^53)";
  }
}

function isObject(json: JsonValue): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** An unknown key as an error may repeat it: short, and without anything that upsets a terminal. */
function shown(key: string): string {
  const clean = key.toWellFormed().replace(/[^\p{L}\p{N}\p{P}\p{S} ]/gu, "?");
  return clean.length > KEY_CHARS_MAX ? `${clean.slice(0, KEY_CHARS_MAX)}…` : clean;
}
