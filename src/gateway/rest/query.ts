/** Query parameters: what a route takes, read strictly, each error naming the parameter. */

import { ScalarType, type DescField, type DescMessage } from "@bufbuild/protobuf";
import { invalidArgument } from "../../base/errors.ts";

/** What a parameter may be: a type, or the words it may say. */
export type QueryType = "string" | "int32" | "int64" | "boolean" | readonly string[];

/** One parameter. */
export interface QueryParameter {
  readonly type: QueryType;
  readonly description: string;
}

/** The parameters of a route, by name. */
export type QueryParameters = Readonly<Record<string, QueryParameter>>;

/** The values of a request, as far as they were given. */
export interface QueryValues {
  /** The parameter as text; "" when it was not given. */
  text(name: string): string;
  /** The parameter as a whole number; undefined when it was not given. */
  int64(name: string): bigint | undefined;
  /** The parameter as a whole number of 32 bits; undefined when it was not given. */
  int32(name: string): number | undefined;
  /** Whether the parameter is `true`. */
  flag(name: string): boolean;
  has(name: string): boolean;
}

const INT32_MAX = 2n ** 31n - 1n;
const INT64_MAX = 2n ** 63n - 1n;

/**
 * Reads the query of a URL. Throws INVALID_ARGUMENT for an unknown parameter, one given twice and one of the wrong type. A
 * parameter may be spelled in camelCase, like a field of a body.
 */
export function readQuery(url: string, parameters: QueryParameters): QueryValues {
  const values = new Map<string, string>();
  // Whatever the Host header says, the query is what comes after the question mark.
  for (const [key, value] of new URLSearchParams(/\?([^#]*)/.exec(url)?.[1])) {
    const name = Object.keys(parameters).find((candidate) => candidate === key || camelCase(candidate) === key);
    if (name === undefined) throw invalidArgument(key.slice(0, 64), `is not a parameter of this call; ${known(parameters)}`);
    if (values.has(name)) throw invalidArgument(name, "must be given once");
    refuseWrongType(name, value, parameters[name]!.type);
    values.set(name, value);
  }
  return {
    text: (name) => values.get(name) ?? "",
    int64: (name) => (values.has(name) ? BigInt(values.get(name)!) : undefined),
    int32: (name) => (values.has(name) ? Number(values.get(name)) : undefined),
    flag: (name) => values.get(name) === "true",
    has: (name) => values.has(name),
  };
}

function refuseWrongType(name: string, value: string, type: QueryType): void {
  if (typeof type !== "string") {
    if (!type.includes(value)) throw invalidArgument(name, `must be one of ${type.join(", ")}`);
    return;
  }
  switch (type) {
    case "string":
      return;
    case "boolean":
      if (value !== "true" && value !== "false") throw invalidArgument(name, "must be true or false");
      return;
    case "int32":
      if (!isWhole(value, INT32_MAX)) throw invalidArgument(name, "must be a whole number of 32 bits");
      return;
    case "int64":
      if (!isWhole(value, INT64_MAX)) throw invalidArgument(name, "must be a whole number of 64 bits");
  }
}

function isWhole(value: string, max: bigint): boolean {
  if (!/^-?\d{1,20}$/.test(value)) return false;
  const number = BigInt(value);
  return number <= max && number >= -max - 1n;
}

function known(parameters: QueryParameters): string {
  const names = Object.keys(parameters);
  return names.length === 0 ? "it takes none" : `it takes ${names.join(", ")}`;
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The parameters that are the fields of a request message: the names and types cannot drift from the protocol. */
export function parametersOf(message: DescMessage, descriptions: Readonly<Record<string, string>>): QueryParameters {
  const parameters: Record<string, QueryParameter> = {};
  for (const [name, description] of Object.entries(descriptions)) {
    const field = message.fields.find((candidate) => candidate.name === name);
    if (field === undefined) throw new TypeError(`${message.typeName} has no field ${name}`);
    parameters[name] = { type: typeOf(field), description };
  }
  return parameters;
}

function typeOf(field: DescField): QueryType {
  if (field.fieldKind === "scalar") {
    if (field.scalar === ScalarType.STRING) return "string";
    if (field.scalar === ScalarType.INT32) return "int32";
    if (field.scalar === ScalarType.INT64) return "int64";
    if (field.scalar === ScalarType.BOOL) return "boolean";
  }
  throw new TypeError(`${field.name} cannot be a query parameter`);
}
