/** Objects of the config file whose keys are known, and what they refer to: variables of the host and files. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { invalidArgument } from "../base/index.ts";
import { entriesOf, textOf, type ConfigValue } from "./config-value.ts";

/** What the file refers to. */
export interface ConfigSurroundings {
  /** The config file's folder. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Takes the path of every file that a secret was read from, absolute. */
  readonly secretFiles?: Set<string> | undefined;
}

const VARIABLES_MAX = 256;

/** Variables: a text as it is; `{"env": NAME}` and `{"file": PATH}`, for secrets, from the host's own environment or from a file. */
export function environmentOf(variables: ConfigValue, around: ConfigSurroundings): Readonly<Record<string, string>> {
  const entries = [...entriesOf(variables)];
  if (entries.length > VARIABLES_MAX) throw invalidArgument(variables.at, `must have at most ${VARIABLES_MAX} variables`);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name)) return [name, variableOf(value, around)];
      throw invalidArgument(value.at, "must have a name of letters, digits and underscores that begins with no digit");
    }),
  );
}

function variableOf(variable: ConfigValue, around: ConfigSurroundings): string {
  const { at, value } = variable;
  if (typeof value === "string" && !value.includes("\u0000")) return value;
  if (typeof value !== "object") throw invalidArgument(at, 'must be a text, {"env": NAME} or {"file": PATH}');
  return secretOf(variable, around);
}

/** `{"env": NAME}` or `{"file": PATH}`: what does not stand in the file itself. */
export function secretOf(secret: ConfigValue, around: ConfigSurroundings): string {
  const { at, value } = secret;
  if (typeof value === "string") throw invalidArgument(at, 'must be {"env": NAME} or {"file": PATH}: a secret does not stand in the file');
  const [source, ...more] = entriesOf(secret, ["env", "file"]);
  if (source === undefined || more.length > 0) throw invalidArgument(at, "must have one of the keys env and file");
  const [kind, name] = source;
  if (kind === "file") return secretText(name, around).trim();
  const found = around.env[textOf(name)];
  if (found === undefined) throw invalidArgument(name.at, "must name a variable that the host has");
  return found;
}

/** The text of a file whose content is secret. */
export function secretText(path: ConfigValue, around: ConfigSurroundings): string {
  around.secretFiles?.add(resolve(around.folder, textOf(path)));
  return fileText(path, around);
}

export function fileText(path: ConfigValue, { folder }: ConfigSurroundings): string {
  try {
    return readFileSync(resolve(folder, textOf(path)), "utf8");
  } catch (error) {
    throw invalidArgument(path.at, "must name a file that can be read", { cause: error });
  }
}

/** The fields of an object whose keys are known. */
export interface Fields {
  required<T>(key: string, read: (value: ConfigValue) => T): T;
  optional<T>(key: string, read: (value: ConfigValue) => T): T | undefined;
}

export function fieldsOf(object: ConfigValue, keys: readonly string[], shared: readonly string[] = ["runtime"]): Fields {
  const entries = entriesOf(object, [...shared, ...keys]);
  const optional = <T>(key: string, read: (value: ConfigValue) => T): T | undefined => {
    const entry = entries.get(key);
    return entry === undefined ? undefined : read(entry);
  };
  return {
    optional,
    required: (key, read) => read(entries.get(key) ?? { at: `${object.at}.${key}`, value: undefined }),
  };
}
