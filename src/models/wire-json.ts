/**
 * Readers for JSON that a provider sent. The clients' types promise a shape that nobody checks, so each field is read as what
 * it may be, and a field of another type is a broken protocol. Absent and null are the same.
 */

import { malformed } from "./fault.ts";

/** A JSON object with unknown fields. */
export type WireObject = Readonly<Record<string, unknown>>;

/** `value` as an object; a fault when it is anything else. */
export function wireObject(value: unknown): WireObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) malformed();
  return value as WireObject;
}

/** A field that may hold an object. */
export function objectField(object: WireObject, name: string): WireObject | undefined {
  const value = object[name];
  return value === undefined || value === null ? undefined : wireObject(value);
}

/** A field that may hold a list. */
export function listField(object: WireObject, name: string): readonly unknown[] | undefined {
  const value = object[name];
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) malformed();
  return value as readonly unknown[];
}

/** A field that may hold a string. */
export function stringField(object: WireObject, name: string): string | undefined {
  const value = object[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") malformed();
  return value;
}

/** A field that may hold the index of something. */
export function indexField(object: WireObject, name: string): number | undefined {
  const value = object[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) malformed();
  return value;
}

/**
 * The count of tokens at `path`. It is accounting, not protocol: what is no count is left out rather than failing a completion
 * that was paid for.
 */
export function countAt(value: unknown, ...path: readonly string[]): number | undefined {
  let inner = value;
  for (const name of path) {
    if (typeof inner !== "object" || inner === null) return undefined;
    inner = (inner as WireObject)[name];
  }
  return typeof inner === "number" && Number.isSafeInteger(inner) && inner >= 0 ? inner : undefined;
}
