/**
 * From a request's params, which are strings, to a provider's typed options.
 *
 * A param that a provider does not know is refused, with the list of those it knows: a misspelt `temprature` that is silently
 * left out changes answers and nobody sees why.
 */

import { invalidArgument } from "../base/errors.ts";

/** Reads one param's text; `field` names it in errors. */
export type ParamReader<Options> = (value: string, field: string) => Partial<Options>;

/** The params that a provider knows. */
export type ParamTable<Options> = Readonly<Record<string, ParamReader<Options>>>;

/** The typed options of `params`. Throws INVALID_ARGUMENT naming `params.<name>`; `alsoKnown` are the names that another table reads. */
export function readParams<Options extends object>(
  params: Readonly<Record<string, string>> | undefined,
  table: ParamTable<Options>,
  alsoKnown: readonly string[] = [],
): Partial<Options> {
  const options: Partial<Options> = {};
  for (const [name, value] of Object.entries(params ?? {})) {
    const field = paramField(name);
    if (!Object.hasOwn(table, name)) {
      throw invalidArgument(field, `is not known; known are ${[...Object.keys(table), ...alsoKnown].join(", ")}`);
    }
    addOptions(options, table[name]!(value, field));
  }
  return options;
}

/** Several params may speak of one object of the request, such as Anthropic's `output_config`: each adds its own fields. */
function addOptions(options: object, more: object): void {
  for (const [key, value] of Object.entries(more)) {
    const known: unknown = Reflect.get(options, key);
    Reflect.set(options, key, isFieldset(known) && isFieldset(value) ? { ...known, ...value } : value);
  }
}

function isFieldset(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Throws INVALID_ARGUMENT where two params are given that say the same thing. */
export function refuseBoth(params: Readonly<Record<string, string>> | undefined, one: string, other: string): void {
  if (params?.[one] !== undefined && params[other] !== undefined) throw invalidArgument(`params.${one}`, `goes without params.${other}`);
}

/** What an error calls a param: a name that could be anything is not repeated. */
function paramField(name: string): string {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(name) ? `params.${name}` : "params";
}

/** A decimal number from `least` to `most`. */
export function readNumber(value: string, field: string, least: number, most: number): number {
  const number = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (!(number >= least && number <= most)) throw invalidArgument(field, `must be a number from ${least} to ${most}`);
  return number;
}

/** A whole number from `least` up. */
export function readWhole(value: string, field: string, least: number): number {
  const number = /^-?\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < least) {
    throw invalidArgument(field, least === Number.MIN_SAFE_INTEGER ? "must be a whole number" : `must be a whole number from ${least}`);
  }
  return number;
}

/** `true` or `false`. */
export function readBoolean(value: string, field: string): boolean {
  if (value !== "true" && value !== "false") throw invalidArgument(field, "must be true or false");
  return value === "true";
}

/** One of a set of words. */
export function readWord<Word extends string>(value: string, field: string, words: readonly Word[]): Word {
  const word = words.find((candidate) => candidate === value);
  if (word === undefined) throw invalidArgument(field, `must be one of ${words.join(", ")}`);
  return word;
}

/** Any text but the empty one. */
export function readText(value: string, field: string): string {
  if (value === "") throw invalidArgument(field, "must not be empty");
  return value;
}

/** Stop sequences: a JSON array of strings, or else one sequence as it stands. */
export function readStop(value: string, field: string): string[] {
  const stops = stringList(value) ?? [value];
  if (stops.length === 0 || stops.includes("")) {
    throw invalidArgument(field, "must be one stop sequence or a JSON array of them, none of them empty");
  }
  return stops;
}

/** Names: a JSON array of strings, or else one name as it stands. */
export function readNames(value: string, field: string): string[] {
  const names = stringList(value) ?? [value];
  if (names.includes("")) throw invalidArgument(field, "must be one name or a JSON array of them, none of them empty");
  return names;
}

function stringList(value: string): string[] | undefined {
  if (!value.startsWith("[")) return undefined;
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) && parsed.every((item) => typeof item === "string") ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** A JSON object. */
export function readObject(value: string, field: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>;
  } catch {
    // Falls through to the error below, which says what would be right.
  }
  throw invalidArgument(field, "must be a JSON object");
}

/** The effort of a model's reasoning, in the words that the providers share; each takes some of them. */
export function readEffort(value: string, field: string): "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" {
  return readWord(value, field, ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const);
}

/**
 * The JSON Schema that the answer's text is to follow: the param `output_schema` of every provider. Its dialect is the provider's; all of them
 * want an object at the top.
 */
export function readOutputSchema(value: string, field: string): Record<string, unknown> {
  const schema = readObject(value, field);
  if (schema["type"] !== "object") throw invalidArgument(field, 'must be a JSON Schema whose "type" is "object"');
  return schema;
}

/** The name of the schema where a provider wants one. */
export const OUTPUT_SCHEMA_NAME = "output";
