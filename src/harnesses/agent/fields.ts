/** Reading a definition: values with the path of keys that leads to them. Every throw is INVALID_ARGUMENT and names that path. */

import { invalidArgument } from "../../base/errors.ts";

/** A value, and where it stands. */
export interface Field {
  readonly at: string;
  readonly value: unknown;
}

type Fields<Key extends string> = { readonly [Name in Key]: Field };

/** The fields of an object that may have `keys` and no others; one that is absent has the value undefined. */
export function fieldsOf<Key extends string>(object: Field, keys: readonly Key[]): Fields<Key> {
  const values = recordOf(object);
  for (const key of Object.keys(values)) {
    if (!keys.some((known) => known === key)) throw invalidArgument(pathOf(object.at, key), `is not known; known are ${keys.join(", ")}`);
  }
  return Object.fromEntries(keys.map((key) => [key, { at: `${object.at}.${key}`, value: values[key] }])) as Fields<Key>;
}

/** The value as an object; what is absent has no entries. */
export function recordOf({ at, value = {} }: Field): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidArgument(at, "must be an object");
  return value as Readonly<Record<string, unknown>>;
}

/** A text; "" where it is absent. */
export function textOf({ at, value = "" }: Field): string {
  if (typeof value === "string" && value.isWellFormed()) return value;
  throw invalidArgument(at, "must be a text");
}

/** A whole number. */
export function countOf({ at, value }: Field, range: { readonly min: number; readonly max: number; readonly otherwise: number }): number {
  const { min, max, otherwise } = range;
  if (value === undefined) return otherwise;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw invalidArgument(at, `must be a whole number from ${min} to ${max}`);
}

/** True or false; false where it is absent. */
export function flagOf({ at, value = false }: Field): boolean {
  if (typeof value === "boolean") return value;
  throw invalidArgument(at, "must be true or false");
}

/** A list; empty where it is absent. */
export function listOf({ at, value = [] }: Field, max: number): readonly Field[] {
  if (!Array.isArray(value)) throw invalidArgument(at, "must be a list");
  if (value.length > max) throw invalidArgument(at, `must have at most ${max} entries`);
  return value.map((each: unknown, index) => ({ at: `${at}[${index}]`, value: each }));
}

/** The path of a key; one that could be anything is not repeated. */
export function pathOf(at: string, key: string): string {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(key) ? `${at}.${key}` : at;
}
