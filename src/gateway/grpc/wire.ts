/**
 * A request's bytes against its schema, field by field.
 *
 * The library's decoder goes by the schema's type and not by the tag's, so bytes of another type are read as something that nobody
 * sent. This walk refuses them, and it names the field, which the decoder does not. Unknown fields pass: a newer client may send
 * them.
 */

import { isUtf8 } from "node:buffer";
import { fromBinary, ScalarType, type DescField, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";

/** As deep as the library decodes. */
const DEPTH_MAX = 100;

/**
 * The request in `bytes`. Throws INVALID_ARGUMENT that names the field which cannot be read, and RESOURCE_EXHAUSTED for more than
 * `partsMax` fields, nested and unknown ones included: it is not decoded then.
 */
export function decodeRequest<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array, partsMax: number): MessageShape<Desc> {
  const walk: Walk = { parts: 0, partsMax };
  checkFields((number) => desc.fields.find((field) => field.number === number), bytes, "", 0, walk);
  try {
    return fromBinary(desc, bytes);
  } catch (error) {
    throw invalidArgument("request", `is not a ${desc.typeName}`, { cause: error });
  }
}

/** How far the walk has come. A field of two bytes becomes an object of a hundred, so bytes alone are no measure of the work. */
interface Walk {
  parts: number;
  readonly partsMax: number;
}

function count(walk: Walk, parts: number): void {
  walk.parts += parts;
  if (walk.parts <= walk.partsMax) return;
  throw new HoldfastError("resource_exhausted", `request: must have at most ${walk.partsMax} fields, nested ones included`, {
    field: "request",
  });
}

/** What the walk needs to know of a field. */
interface FieldShape {
  readonly name: string;
  readonly fieldKind: DescField["fieldKind"];
  readonly message?: DescMessage | undefined;
  readonly scalar?: ScalarType | undefined;
  readonly mapKey?: ScalarType | undefined;
}

/** Finds a field by its number; undefined for one that is not known here. */
type FieldFinder = (number: number) => FieldShape | undefined;

function checkFields(find: FieldFinder, bytes: Uint8Array, path: string, depth: number, walk: Walk): void {
  if (depth > DEPTH_MAX) throw invalidArgument(named(path), "is nested too deeply");
  const reader = new BinaryReader(bytes);
  const counts = new Map<number, number>();
  while (reader.pos < reader.len) {
    const [number, wireType] = guarded(path, () => reader.tag());
    count(walk, 1);
    const field = find(number);
    if (field === undefined) {
      skipUnknown(reader, number, wireType, path, depth, walk);
      continue;
    }
    const index = counts.get(number) ?? 0;
    counts.set(number, index + 1);
    const name = path === "" ? field.name : `${path}.${field.name}`;
    checkField(field, reader, wireType, field.fieldKind === "list" ? `${name}[${index}]` : name, depth, walk);
  }
}

/** A group has its fields in place, without a length: each is a step of the library's, too. */
function skipUnknown(reader: BinaryReader, number: number, wireType: WireType, path: string, depth: number, walk: Walk): void {
  if (wireType !== WireType.StartGroup) {
    guarded(path, () => reader.skip(wireType, number));
    return;
  }
  if (depth > DEPTH_MAX) throw invalidArgument(named(path), "is nested too deeply");
  for (;;) {
    const [inner, innerType] = guarded(path, () => reader.tag());
    count(walk, 1);
    if (innerType !== WireType.EndGroup) skipUnknown(reader, inner, innerType, path, depth + 1, walk);
    else if (inner === number) return;
    else throw invalidArgument(named(path), "is cut off, or is no protobuf");
  }
}

function checkField(field: FieldShape, reader: BinaryReader, wireType: WireType, path: string, depth: number, walk: Walk): void {
  const expected = wireTypeOf(field);
  const isPacked = field.fieldKind === "list" && wireType === WireType.LengthDelimited && expected !== WireType.LengthDelimited;
  if (wireType !== expected && !isPacked) throw invalidArgument(path, `must be ${kindOf(field)}`);
  if (wireType !== WireType.LengthDelimited) {
    guarded(path, () => reader.skip(wireType));
    return;
  }
  const bytes = guarded(path, () => reader.bytes());
  if (isPacked) count(walk, bytes.length / bytesOfOne(expected));
  if (field.fieldKind === "map") return checkFields(entryOf(field), bytes, path, depth + 1, walk);
  if (field.message !== undefined) {
    const { fields } = field.message;
    return checkFields((number) => fields.find((inner) => inner.number === number), bytes, path, depth + 1, walk);
  }
  if (field.scalar === ScalarType.STRING && !isUtf8(bytes)) throw invalidArgument(path, "must be UTF-8");
}

/** A map entry on the wire is a message of a key and a value. */
function entryOf(map: FieldShape): FieldFinder {
  return (number) => {
    if (number === 1) return { name: "key", fieldKind: "scalar", scalar: map.mapKey };
    if (number === 2) return { name: "value", fieldKind: "scalar", message: map.message, scalar: map.scalar };
    return undefined;
  };
}

/** The least bytes of one element of a packed list. */
function bytesOfOne(wireType: WireType): number {
  if (wireType === WireType.Bit64) return 8;
  return wireType === WireType.Bit32 ? 4 : 1;
}

/** Runs a step of the reader, whose errors name no field. */
function guarded<T>(path: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    throw invalidArgument(named(path), "is cut off, or is no protobuf", { cause: error });
  }
}

function named(path: string): string {
  return path === "" ? "request" : path;
}

function wireTypeOf(field: FieldShape): WireType {
  if (field.fieldKind === "map" || field.message !== undefined) return WireType.LengthDelimited;
  switch (field.scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}

function kindOf(field: FieldShape): string {
  if (field.fieldKind === "map") return "a map";
  if (field.message !== undefined) return "a message";
  switch (field.scalar) {
    case ScalarType.STRING:
      return "a string";
    case ScalarType.BYTES:
      return "bytes";
    case ScalarType.BOOL:
      return "a bool";
    case undefined:
      return "an enum value";
    default:
      return "a number";
  }
}
