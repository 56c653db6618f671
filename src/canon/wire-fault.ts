/**
 * Looks for what a LogRecord's bytes may hold beside the message that is hashed. Readers of protobuf are lenient: they pass
 * over fields that they do not know, and the library takes a field of the wrong wire type, and a Value without a kind, for
 * something else. Hashing what it read would call such bytes intact.
 *
 * Invariant: bytes without a fault hold nothing that the decoded message does not say. Unusual but legal encodings (order,
 * repetition, long varints) are no fault: other writers may use them.
 */

import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { LogRecordSchema } from "../gen/agentsessions/v1/common_pb.ts";

/** As deep as the library reads. */
const DEPTH_MAX = 100;
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
/** `google.protobuf.Value` is the one message here that must not be empty: a Value without a kind has no JSON form. */
const VALUE = "google.protobuf.Value";

/** What one field of a message may look like. */
interface FieldShape {
  readonly wireType: number;
  /** The shape of the message inside; undefined for a scalar. */
  readonly inside: MessageShape | undefined;
}

interface MessageShape {
  /** By field number. */
  readonly fields: (FieldShape | undefined)[];
  /** A field that must be there; 0 for none. */
  required: number;
  readonly isValue: boolean;
}

const shapes = new Map<string, MessageShape>();

function shapeOf(desc: DescMessage): MessageShape {
  const known = shapes.get(desc.typeName);
  if (known !== undefined) return known;
  const shape: MessageShape = { fields: [], required: 0, isValue: desc.typeName === VALUE };
  // Registered before its fields are looked at: messages contain themselves.
  shapes.set(desc.typeName, shape);
  for (const field of desc.fields) shape.fields[field.number] = fieldShapeOf(field);
  return shape;
}

function fieldShapeOf(field: DescField): FieldShape {
  switch (field.fieldKind) {
    case "enum":
      return { wireType: VARINT, inside: undefined };
    case "scalar":
      return { wireType: scalarWireType(field.scalar), inside: undefined };
    case "message":
      return { wireType: LENGTH, inside: shapeOf(field.message) };
    case "list":
      if (field.listKind !== "message") throw new TypeError(`no shape for the list ${field.name}`);
      return { wireType: LENGTH, inside: shapeOf(field.message) };
    case "map":
      return { wireType: LENGTH, inside: entryShapeOf(field) };
  }
}

/** A map's entry is a message of key and value. A missing value is the default one, which for a Value has no kind. */
function entryShapeOf(field: Extract<DescField, { fieldKind: "map" }>): MessageShape {
  const value = field.mapKind === "message" ? shapeOf(field.message) : undefined;
  const text: FieldShape = { wireType: LENGTH, inside: undefined };
  const required = value?.isValue === true ? 2 : 0;
  return { fields: [undefined, text, { wireType: LENGTH, inside: value }], required, isValue: false };
}

/** The scalar types that the contract's messages use, by their numbers in descriptors. */
function scalarWireType(scalar: number): number {
  switch (scalar) {
    case 1:
      return FIXED64; // double
    case 3:
    case 5:
    case 8:
      return VARINT; // int64, int32, bool
    case 9:
    case 12:
      return LENGTH; // string, bytes
    default:
      throw new TypeError(`no wire type for scalar ${scalar}`);
  }
}

const RECORD_SHAPE = shapeOf(LogRecordSchema);

/** The bytes and where the reader stands. */
interface Cursor {
  readonly bytes: Uint8Array;
  at: number;
}

/**
 * What is wrong with `bytes` as a LogRecord, in words for a report; undefined when nothing is. It does not look into strings:
 * the library refuses what is no UTF-8.
 */
export function wireFaultOf(bytes: Uint8Array): string | undefined {
  return faultIn({ bytes, at: 0 }, bytes.length, RECORD_SHAPE, 1);
}

function faultIn(cursor: Cursor, end: number, shape: MessageShape, depth: number): string | undefined {
  if (depth > DEPTH_MAX) return "is nested too deeply";
  let last = 0;
  let sawRequired = shape.required === 0;
  while (cursor.at < end) {
    const tag = varint(cursor);
    if (tag < 0) return "ends in the middle of a field";
    last = Math.floor(tag / 8);
    if (last === shape.required) sawRequired = true;
    const field = shape.fields[last];
    if (field === undefined) return "holds a field that this version does not know";
    if (tag % 8 !== field.wireType) return "holds a field of the wrong wire type";
    const fault = faultInField(cursor, end, field, depth);
    if (fault !== undefined) return fault;
  }
  if (cursor.at !== end) return "ends in the middle of a field";
  return !sawRequired || (shape.isValue && last === 0) ? "holds a value without a kind" : undefined;
}

function faultInField(cursor: Cursor, end: number, field: FieldShape, depth: number): string | undefined {
  if (field.wireType === FIXED64) {
    cursor.at += 8;
    return undefined;
  }
  const value = varint(cursor);
  if (value < 0) return "ends in the middle of a field";
  if (field.wireType === VARINT) return undefined;
  const fieldEnd = cursor.at + value;
  if (fieldEnd > end) return "ends in the middle of a field";
  if (field.inside !== undefined) return faultIn(cursor, fieldEnd, field.inside, depth + 1);
  cursor.at = fieldEnd;
  return undefined;
}

/** The next varint; −1 when it does not end. What is beyond 2^53 is rounded, which is exact enough for what is skipped. */
function varint(cursor: Cursor): number {
  const first = cursor.bytes[cursor.at++];
  if (first === undefined) return -1;
  if (first < 0x80) return first;
  let value = first & 0x7f;
  let scale = 0x80;
  for (let count = 1; count < 10; count++) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) return -1;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value;
    scale *= 0x80;
  }
  return -1;
}
