/**
 * The config file: JSON with a server's settings by their keys, and what it says of harnesses, agents, environments,
 * models, tools, spawning, approvals and budgets.
 *
 * Invariants: a key that is not known is refused by its path, so that a slip of the pen never passes for a default; a secret is refused;
 * nothing of the file's text is in an error.
 */

import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { invalidArgument } from "../base/index.ts";
import { entriesOf, type ConfigValue } from "./config-value.ts";
import { SETTINGS, type Setting, type SettingName } from "./settings.ts";

/** What a config file says. */
export interface ConfigFile {
  /** The file's folder, which its paths are relative to. */
  readonly folder: string;
  /** The given settings as they would stand in a variable; paths are whole. */
  readonly settings: ReadonlyMap<SettingName, string>;
  /** What stands under the keys that are no settings; none where nothing does. */
  readonly sections: { readonly [Section in SectionName]?: ConfigValue | undefined };
}

const SECTIONS = ["harnesses", "agents", "environments", "models", "tools", "spawn", "policies", "approvals", "budgets"] as const;

/** A key of the file whose value is read by whoever it concerns. */
export type SectionName = (typeof SECTIONS)[number];

/** The largest config file. */
export const CONFIG_BYTES_MAX = 1024 * 1024;

/** Reads a file. Throws INVALID_ARGUMENT that names `field` where the file cannot be read, and the key's path where it is wrong. */
export function readConfigFile(path: string, field: string): ConfigFile {
  const whole = resolve(path);
  return configFileOf(parsed(textOfFile(whole, field), field), dirname(whole));
}

function textOfFile(path: string, field: string): string {
  try {
    if (statSync(path).size <= CONFIG_BYTES_MAX) return readFileSync(path, "utf8");
  } catch (error) {
    throw invalidArgument(field, "must name a file that can be read", { cause: error });
  }
  throw invalidArgument(field, `must name a file of at most ${CONFIG_BYTES_MAX} bytes`);
}

function parsed(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The message quotes the file; where it is wrong is all that is told on.
    const place = /\(line \d+ column \d+\)/.exec(error instanceof Error ? error.message : "")?.[0] ?? "";
    throw invalidArgument(field, `must name a file of JSON, without comments; this one is none ${place}`.trimEnd());
  }
}

/** The settings and sections in the value of a config file. */
export function configFileOf(value: unknown, folder: string): ConfigFile {
  const settings = new Map<SettingName, string>();
  const take = (entries: ReadonlyMap<string, ConfigValue>): void => {
    for (const entry of entries.values()) {
      const name = settingAt(entry.at);
      if (name === undefined) take(entriesOf(entry, keysUnder(entry.at)));
      else settings.set(name, settingText(entry, SETTINGS[name], folder));
    }
  };
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidArgument("config", "must be an object of settings");
  const top = new Map(entriesOf({ at: "", value }));
  const sections: { [Section in SectionName]?: ConfigValue | undefined } = {};
  for (const name of SECTIONS) {
    sections[name] = top.get(name);
    top.delete(name);
  }
  for (const { at } of top.values()) refuseUnknown(at);
  take(top);
  return { folder, settings, sections };
}

const ENTRIES = Object.entries(SETTINGS) as readonly (readonly [SettingName, Setting])[];

function settingAt(path: string): SettingName | undefined {
  return ENTRIES.find(([, { file }]) => file === path)?.[0];
}

/** The keys that an object at `path` may have. */
function keysUnder(path: string): readonly string[] {
  const start = path === "" ? "" : `${path}.`;
  const keys = ENTRIES.flatMap(([, { file }]) => (file?.startsWith(start) === true ? [file.slice(start.length).split(".")[0] ?? ""] : []));
  return [...new Set(keys)];
}

function refuseUnknown(key: string): void {
  const known = keysUnder("");
  if (known.includes(key)) return;
  const secret = ENTRIES.find(([name, { file }]) => name === key && file === undefined)?.[1];
  if (secret !== undefined) throw invalidArgument(key, `must not stand in the config file; set ${secret.env}`);
  throw invalidArgument(key, `is no key here; there are: ${[...known, ...SECTIONS].join(", ")}`);
}

function settingText({ at, value }: ConfigValue, { form }: Setting, folder: string): string {
  if (form === "number") {
    if (typeof value === "number") return String(value);
    throw invalidArgument(at, "must be a number");
  }
  if (typeof value !== "string" || value.includes("\u0000")) throw invalidArgument(at, "must be a text");
  return form === "path" && value.trim() !== "" ? resolve(folder, value.trim()) : value;
}
