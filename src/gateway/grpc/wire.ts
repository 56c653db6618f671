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
import { invalidArgument } from "../../base/errors.ts";

/** As deep as the library decodes. */
const DEPTH_MAX = 100;

/** The request in `bytes`. Throws INVALID_ARGUMENT that names the field which cannot be read. */
export function decodeRequest<Desc extends DescMessage>(desc: Desc, bytes: Uint8Array): MessageShape<Desc> {
  checkFields((number) => desc.fields.find((field) => field.number === number), bytes, "", 0);
  try {
    return fromBinary(desc, bytes);
  } catch (error) {
    throw invalidArgument("request", `is not a ${desc.typeName}`, { cause: error });
  }
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

function checkFields(find: FieldFinder, bytes: Uint8Array, path: string, depth: number): void {
  if (depth > DEPTH_MAX) throw invalidArgument(named(path), "is nested too deeply");
  const reader = new BinaryReader(bytes);
  const counts = new Map<number, number>();
  while (reader.pos < reader.len) {
    const [number, wireType] = guarded(path, () => reader.tag());
    const field = find(number);
    if (field === undefined) {
      guarded(path, () => reader.skip(wireType, number, DEPTH_MAX - depth));
      continue;
    }
    const index = counts.get(number) ?? 0;
    counts.set(number, index + 1);
    const name = path === "" ? field.name : `${path}.${field.name}`;
    checkField(field, reader, wireType, field.fieldKind === "list" ? `${name}[${index}]` : name, depth);
  }
}

function checkField(field: FieldShape, reader: BinaryReader, wireType: WireType, path: string, depth: number): void {
  const expected = wireTypeOf(field);
  const isPacked = field.fieldKind === "list" && wireType === WireType.LengthDelimited && expected !== WireType.LengthDelimited;
  if (wireType !== expected && !isPacked) throw invalidArgument(path, `must be ${kindOf(field)}`);
  if (wireType !== WireType.LengthDelimited) {
    guarded(path, () => reader.skip(wireType));
    return;
  }
  const bytes = guarded(path, () => reader.bytes());
  if (field.fieldKind === "map") return checkFields(entryOf(field), bytes, path, depth + 1);
  if (field.message !== undefined) {
    const { fields } = field.message;
    return checkFields((number) => fields.find((inner) => inner.number === number), bytes, path, depth + 1);
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
