/**
 * A model's tool arguments as the record takes them.
 *
 * A model writes JSON token by token and can get it wrong or be stopped in the middle. The completion is not lost for that: the
 * call stands in the message without `args`, and whoever runs the tools answers it with an error result, as for any other
 * mistake of a model. An empty text is the empty object, which is what models send for a tool without parameters.
 */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** Deeper arguments count as malformed: each level takes up to three of protobuf, and readers of the wire stop at a hundred. */
export const ARGS_DEPTH_MAX = 24;

/**
 * The object that `text` stands for, its strings well-formed. Undefined when it is not a JSON object, is too deep, or holds a
 * number that a record cannot hold exactly: one that is not finite, or an integer beyond ±(2^53−1).
 */
export function parseToolArgs(text: string): JsonObject | undefined {
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  return recordableArgs(value);
}

/** `value` as tool arguments, under the rules of `parseToolArgs`. */
export function recordableArgs(value: unknown): JsonObject | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return recordableObject(value, ARGS_DEPTH_MAX);
}

/** `levels`: how many containers there may be from here down, this one included. */
function recordableObject(value: object, levels: number): JsonObject | undefined {
  const entries: [string, JsonValue][] = [];
  for (const [key, inner] of Object.entries(value)) {
    const recordable = recordableValue(inner, levels - 1);
    if (recordable === undefined) return undefined;
    entries.push([key.toWellFormed(), recordable]);
  }
  // fromEntries defines each key, so one that is called "__proto__" is a key like any other.
  return Object.fromEntries(entries);
}

function recordableValue(value: unknown, levels: number): JsonValue | undefined {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "number") {
    return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value)) ? value : undefined;
  }
  if (typeof value !== "object" || levels === 0) return undefined;
  if (!Array.isArray(value)) return recordableObject(value, levels);
  const items: JsonValue[] = [];
  for (const inner of value) {
    const recordable = recordableValue(inner, levels - 1);
    if (recordable === undefined) return undefined;
    items.push(recordable);
  }
  return items;
}
