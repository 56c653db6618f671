/** JSON that came from elsewhere, made fit for a record: no lone surrogate, no number that JSON cannot write, no bottomless nesting. */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** `value` as a record can hold it; undefined where it is nested deeper than `depthMax` objects and lists, or is no JSON. */
export function recordableJson(value: unknown, depthMax: number): JsonValue | undefined {
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "number":
      // JSON has words for numbers that JavaScript reads as infinite.
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "object":
      if (value === null) return null;
      if (depthMax <= 0) return undefined;
      return Array.isArray(value) ? recordableList(value, depthMax - 1) : recordableEntries(value, depthMax - 1);
    default:
      return undefined;
  }
}

/** `value` as a record can hold it, where it is an object. */
export function recordableObject(value: unknown, depthMax: number): JsonObject | undefined {
  const json = recordableJson(value, depthMax);
  return isJsonObject(json) ? json : undefined;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recordableList(values: readonly unknown[], depthMax: number): JsonValue[] | undefined {
  const list: JsonValue[] = [];
  for (const each of values) {
    const json = recordableJson(each, depthMax);
    if (json === undefined) return undefined;
    list.push(json);
  }
  return list;
}

/** Entries are defined and not assigned: a key may be `__proto__`. */
function recordableEntries(value: object, depthMax: number): JsonObject | undefined {
  const entries: [string, JsonValue][] = [];
  for (const [key, each] of Object.entries(value)) {
    if (each === undefined) continue;
    const json = recordableJson(each, depthMax);
    if (json === undefined) return undefined;
    entries.push([key.toWellFormed(), json]);
  }
  return Object.fromEntries(entries);
}
