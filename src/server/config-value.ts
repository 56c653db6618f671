/** Values of the config file, found to be of their form by the path of their key. Pure. */

import { invalidArgument } from "../base/index.ts";

/** A value, and the path of keys that leads to it. */
export interface ConfigValue {
  readonly at: string;
  readonly value: unknown;
}

/** The entries of an object by their keys. Throws INVALID_ARGUMENT for a key that is not in `known`; without `known` every key is taken. */
export function entriesOf({ at, value }: ConfigValue, known?: readonly string[]): ReadonlyMap<string, ConfigValue> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidArgument(at, "must be an object");
  const entries = new Map<string, ConfigValue>();
  for (const [key, inner] of Object.entries(value)) {
    const path = keyPath(at, key);
    if (known !== undefined && !known.includes(key)) throw invalidArgument(path, `is no key here; there are: ${known.join(", ")}`);
    entries.set(key, { at: path, value: inner });
  }
  return entries;
}

/** The path of a key within an object; one of unusual characters is quoted, and a long one cut. */
export function keyPath(at: string, key: string): string {
  const plain = /^[A-Za-z0-9_-]{1,64}$/.test(key) ? key : JSON.stringify(key.toWellFormed().slice(0, 64));
  return at === "" ? plain : `${at}.${plain}`;
}

/** A text that is not empty and holds no NUL. */
export function textOf({ at, value }: ConfigValue): string {
  if (typeof value === "string" && value.trim() !== "" && !value.includes("\u0000")) return value;
  throw invalidArgument(at, "must be a text that is not empty");
}

/** A whole number from 1 to `max`. */
export function countOf({ at, value }: ConfigValue, max: number): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1 && value <= max) return value;
  throw invalidArgument(at, `must be a whole number from 1 to ${max}`);
}

export function flagOf({ at, value }: ConfigValue): boolean {
  if (typeof value === "boolean") return value;
  throw invalidArgument(at, "must be true or false");
}

export function choiceOf<Choice extends string>({ at, value }: ConfigValue, choices: readonly Choice[]): Choice {
  const choice = choices.find((candidate) => candidate === value);
  if (choice !== undefined) return choice;
  throw invalidArgument(at, `must be ${choices.slice(0, -1).join(", ")} or ${choices.at(-1) ?? ""}`);
}

/** A list of one text or more. */
export function textsOf({ at, value }: ConfigValue, max: number): readonly [string, ...string[]] {
  if (!Array.isArray(value)) throw invalidArgument(at, "must be a list of texts");
  const values: readonly unknown[] = value;
  if (values.length > max) throw invalidArgument(at, `must have at most ${max} texts`);
  const [first, ...rest] = values.map((each, index) => ({ at: `${at}[${index}]`, value: each }));
  if (first === undefined) throw invalidArgument(at, "must have one text at least");
  return [textOf(first), ...rest.map(argumentOf)];
}

/** Any text: what comes after a command's name may be empty. */
function argumentOf({ at, value }: ConfigValue): string {
  if (typeof value === "string" && !value.includes("\u0000")) return value;
  throw invalidArgument(at, "must be a text");
}

/** The values of a list, each with its path. */
export function listOf({ at, value }: ConfigValue, max: number): readonly ConfigValue[] {
  if (!Array.isArray(value)) throw invalidArgument(at, "must be a list");
  const values: readonly unknown[] = value;
  if (values.length > max) throw invalidArgument(at, `must have at most ${max} entries`);
  return values.map((each, index) => ({ at: `${at}[${index}]`, value: each }));
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A number and a unit as milliseconds; NaN for any other text. */
export function spanMsOf(text: string): number {
  const match = /^(\d{1,9})([smhd])$/.exec(text);
  return Number(match?.[1]) * (UNIT_MS[match?.[2] ?? ""] ?? Number.NaN);
}

/** A number and a unit as milliseconds: `90s`, `15m`, `12h`, `30d`. `others` names what else there is, for the error. */
export function durationMsOf({ at, value }: ConfigValue, daysMax: number, others = ""): number {
  const ms = typeof value === "string" ? spanMsOf(value) : Number.NaN;
  if (ms > 0 && ms <= daysMax * 86_400_000) return ms;
  throw invalidArgument(at, `must be a number and a unit (90s, 15m, 12h, 30d) of at most ${daysMax}d${others}`);
}
