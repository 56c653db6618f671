/** JSON schemas of protobuf messages, as their proto3 JSON is. */

import { ScalarType, type DescEnum, type DescField, type DescMessage } from "@bufbuild/protobuf";

/** A JSON schema (draft 2020-12), as OpenAPI 3.1 holds it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Schemas by name, for `components.schemas`. */
export type SchemaRegistry = Map<string, JsonSchema>;

/** A reference to the schema of a message, which is put into the registry with everything that it reaches. */
export function messageSchema(message: DescMessage, registry: SchemaRegistry): JsonSchema {
  const wellKnown = wellKnownSchema(message.typeName);
  if (wellKnown !== undefined) return wellKnown;
  if (!registry.has(message.typeName)) {
    registry.set(message.typeName, {});
    registry.set(message.typeName, objectSchema(message, registry));
  }
  return reference(message.typeName);
}

/** A reference to a schema of `components.schemas`. */
export function reference(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

function objectSchema(message: DescMessage, registry: SchemaRegistry): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  for (const field of message.fields) properties[field.name] = fieldSchema(field, registry);
  const groups = message.oneofs.map((oneof) => `At most one of ${oneof.fields.map((field) => field.name).join(", ")}.`);
  const schema: Record<string, unknown> = { type: "object", properties };
  if (groups.length > 0) schema["description"] = groups.join(" ");
  return schema;
}

function fieldSchema(field: DescField, registry: SchemaRegistry): JsonSchema {
  switch (field.fieldKind) {
    case "scalar":
      return scalarSchema(field.scalar);
    case "enum":
      return enumSchema(field.enum, registry);
    case "message":
      return messageSchema(field.message, registry);
    case "list":
      return { type: "array", items: elementSchema(field, registry) };
    case "map":
      return { type: "object", additionalProperties: valueSchema(field, registry) };
  }
}

function elementSchema(field: DescField & { fieldKind: "list" }, registry: SchemaRegistry): JsonSchema {
  switch (field.listKind) {
    case "scalar":
      return scalarSchema(field.scalar);
    case "enum":
      return enumSchema(field.enum, registry);
    case "message":
      return messageSchema(field.message, registry);
  }
}

function valueSchema(field: DescField & { fieldKind: "map" }, registry: SchemaRegistry): JsonSchema {
  switch (field.mapKind) {
    case "scalar":
      return scalarSchema(field.scalar);
    case "enum":
      return enumSchema(field.enum, registry);
    case "message":
      return messageSchema(field.message, registry);
  }
}

function enumSchema(desc: DescEnum, registry: SchemaRegistry): JsonSchema {
  registry.set(desc.typeName, { type: "string", enum: desc.values.map((value) => value.name) });
  return reference(desc.typeName);
}

/** The JSON schema of a scalar. 64-bit integers are strings in proto3 JSON, so that they are exact past 2^53. */
export function scalarSchema(scalar: ScalarType): JsonSchema {
  switch (scalar) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    case ScalarType.FLOAT:
      return { type: "number", format: "float" };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: "integer", format: "int32" };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: "integer", format: "uint32", minimum: 0 };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return { type: "string", format: "int64", pattern: "^-?[0-9]+$" };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { type: "string", format: "uint64", pattern: "^[0-9]+$" };
  }
}

function wellKnownSchema(typeName: string): JsonSchema | undefined {
  switch (typeName) {
    case "google.protobuf.Timestamp":
      return { type: "string", format: "date-time" };
    case "google.protobuf.Struct":
      return { type: "object", additionalProperties: true };
    default:
      return undefined;
  }
}
