/** The config of the chat harness: a JSON object in UTF-8, or nothing. */

import { invalidArgument } from "../base/errors.ts";

/** What a turn's config may set. */
export interface ChatConfig {
  /** Stands before the conversation as a system message; "" for none. */
  readonly systemPrompt: string;
  /** Asked instead of the session's model; "" for that one. */
  readonly model: string;
  /** Provider options, as a model request has them. */
  readonly params: Readonly<Record<string, string>>;
}

const KEYS = ["system_prompt", "model", "params"];

/**
 * Reads a config: `{"system_prompt": string, "model": string, "params": {name: string | number | boolean}}`, every key optional.
 * Throws INVALID_ARGUMENT naming `config` or `config.<key>`; a key that is not known is refused, since it was meant for something.
 */
export function parseChatConfig(bytes: Uint8Array): ChatConfig {
  const config = bytes.byteLength === 0 ? {} : jsonObject(bytes);
  for (const key of Object.keys(config)) {
    if (!KEYS.includes(key)) throw invalidArgument(fieldOf("config", key), `is not known; known are ${KEYS.join(", ")}`);
  }
  return {
    systemPrompt: stringKey(config, "system_prompt"),
    model: stringKey(config, "model"),
    params: paramsKey(config["params"]),
  };
}

type JsonRecord = Readonly<Record<string, unknown>>;

function jsonObject(bytes: Uint8Array): JsonRecord {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalidArgument("config", "must be a JSON object in UTF-8");
  }
  if (!isRecord(value)) throw invalidArgument("config", "must be a JSON object in UTF-8");
  return value;
}

function stringKey(config: JsonRecord, key: string): string {
  const value = config[key];
  if (value === undefined) return "";
  if (typeof value !== "string" || !value.isWellFormed()) throw invalidArgument(`config.${key}`, "must be a string");
  return value;
}

function paramsKey(value: unknown): Record<string, string> {
  if (value === undefined) return {};
  if (!isRecord(value)) throw invalidArgument("config.params", "must be an object of strings, numbers and booleans");
  const params = Object.entries(value).map(([name, param]): [string, string] => {
    const text = typeof param === "string" || typeof param === "number" || typeof param === "boolean" ? String(param) : undefined;
    if (text === undefined || !text.isWellFormed() || !name.isWellFormed()) {
      throw invalidArgument(fieldOf("config.params", name), "must be a string, a number or a boolean");
    }
    return [name, text];
  });
  return Object.fromEntries(params);
}

/** What an error calls a key: one that could be anything is not repeated. */
function fieldOf(parent: string, key: string): string {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(key) ? `${parent}.${key}` : parent;
}

function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
