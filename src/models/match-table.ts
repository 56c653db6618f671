/** A table by the ids of models: exact names and prefixes. Pure. */

import { invalidArgument } from "../base/errors.ts";

/** One line of a table. */
export interface MatchEntry<Value> {
  /** A model's id, or a prefix of ids followed by `*`, such as `claude-*` or `anthropic/*`. */
  readonly match: string;
  readonly value: Value;
}

/** Finds the value of a model's id; undefined for one that no line matches, and for the empty id. */
export type MatchTable<Value> = (model: string) => Value | undefined;

/**
 * A table. An exact name goes before any prefix, a longer prefix before a shorter one; the order of the lines says nothing.
 * Throws INVALID_ARGUMENT naming `field` for an empty match, a match that is there twice, and a `*` elsewhere than at the end.
 */
export function createMatchTable<Value>(entries: readonly MatchEntry<Value>[], field: string): MatchTable<Value> {
  const exact = new Map<string, Value>();
  const prefixes = new Map<string, Value>();
  for (const { match, value } of entries) {
    const isPrefix = match.endsWith("*");
    const name = isPrefix ? match.slice(0, -1) : match;
    if (name === "" || name.includes("*")) throw invalidArgument(field, "must be a model's id, or a prefix followed by *");
    const table = isPrefix ? prefixes : exact;
    if (table.has(name)) throw invalidArgument(field, "must be there once only");
    table.set(name, value);
  }
  const longestFirst = [...prefixes].sort(([a], [b]) => b.length - a.length);
  return (model) => {
    if (model === "") return undefined;
    return exact.get(model) ?? longestFirst.find(([prefix]) => model.startsWith(prefix))?.[1];
  };
}
