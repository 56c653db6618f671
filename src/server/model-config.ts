/**
 * What the config file says of models, under `models`: which API serves which, what answers when one fails, how many calls may be open, what they
 * cost.
 */

import { invalidArgument } from "../base/index.ts";
import { checkPrice, type MatchEntry, type ModelPrice, type OpenAiApi } from "../models/index.ts";
import { choiceOf, countOf, entriesOf, textsOf, type ConfigValue } from "./config-value.ts";

/** The models of the config file. Each `match` is a model's id, or a prefix of ids followed by `*`. */
export interface ModelsConfig {
  /** Which API of OpenAI's serves a model, where it is not the one of the setting `openaiApi`. */
  readonly api: readonly MatchEntry<OpenAiApi>[];
  /** The models to ask, in order, when a call failed for good. */
  readonly fallbacks: readonly MatchEntry<readonly string[]>[];
  /** How many calls may be open at once, by the provider's name. */
  readonly concurrency: Readonly<Record<string, number>>;
  readonly prices: readonly MatchEntry<ModelPrice>[];
}

/** Nothing said of models. */
export const NO_MODELS: ModelsConfig = { api: [], fallbacks: [], concurrency: {}, prices: [] };

const KEYS = ["api", "fallbacks", "concurrency", "prices"];
const PROVIDERS = ["openai", "anthropic", "google", "echo", "script"];
const FALLBACKS_MAX = 8;
const CALLS_MAX = 100_000;

/** The models in the value under `models`; undefined for nothing. Throws INVALID_ARGUMENT naming the path of what is wrong. */
export function modelsConfig(value: ConfigValue | undefined): ModelsConfig {
  if (value === undefined) return NO_MODELS;
  const sections = entriesOf(value, KEYS);
  return {
    api: linesOf(sections.get("api"), (line) => choiceOf(line, ["responses", "chat"] as const)),
    fallbacks: linesOf(sections.get("fallbacks"), (line) => textsOf(line, FALLBACKS_MAX)),
    concurrency: concurrencyOf(sections.get("concurrency")),
    prices: linesOf(sections.get("prices"), priceOf),
  };
}

function linesOf<Value>(section: ConfigValue | undefined, read: (line: ConfigValue) => Value): readonly MatchEntry<Value>[] {
  if (section === undefined) return [];
  return [...entriesOf(section)].map(([match, line]) => {
    const name = match.endsWith("*") ? match.slice(0, -1) : match;
    if (name === "" || name.includes("*")) throw invalidArgument(line.at, "must be a model's id, or a prefix followed by *");
    return { match, value: read(line) };
  });
}

function concurrencyOf(section: ConfigValue | undefined): Readonly<Record<string, number>> {
  if (section === undefined) return {};
  return Object.fromEntries([...entriesOf(section, PROVIDERS)].map(([name, count]) => [name, countOf(count, CALLS_MAX)]));
}

function priceOf(line: ConfigValue): ModelPrice {
  const fields = entriesOf(line, ["input", "cachedInput", "cacheWrite", "output"]);
  const dollars = (name: string): number | undefined => {
    const field = fields.get(name);
    if (field === undefined) return undefined;
    if (typeof field.value !== "number") throw invalidArgument(field.at, "must be a number of dollars a million tokens");
    return field.value;
  };
  const needed = (name: string): number => {
    const value = dollars(name);
    if (value === undefined) throw invalidArgument(`${line.at}.${name}`, "must be there");
    return value;
  };
  const price = {
    input: needed("input"),
    output: needed("output"),
    cachedInput: dollars("cachedInput"),
    cacheWrite: dollars("cacheWrite"),
  };
  checkPrice(price, line.at);
  return price;
}
