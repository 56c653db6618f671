/**
 * The tools of the config file: MCP servers, how each is reached and what is taken of it.
 *
 * Invariants: what was read is whole, as with harnesses; a header that carries a secret does not stand in the file.
 */

import { resolve } from "node:path";
import { invalidArgument } from "../base/index.ts";
import { isServerName, OUTPUT_BYTES_LIMIT, type HttpReach, type McpServerOptions, type StdioReach } from "../tools/index.ts";
import { environmentOf, fieldsOf, secretOf, type ConfigSurroundings, type Fields } from "./config-fields.ts";
import { countOf, entriesOf, flagOf, textOf, textsOf, type ConfigValue } from "./config-value.ts";

/** What the config file says of tools. */
export interface ToolsConfig {
  /** The MCP servers by name, in the file's order. */
  readonly servers: Readonly<Record<string, McpServerOptions>>;
}

/** Nothing said of tools. */
export const NO_TOOLS: ToolsConfig = { servers: {} };

const SERVERS_MAX = 64;
const ARGUMENTS_MAX = 1_024;
const HEADERS_MAX = 64;
const NAMES_MAX = 1_024;
const TIMEOUT_MS_MAX = 24 * 3_600_000;

/** The tools in the value under `tools`. Throws INVALID_ARGUMENT that names the path of the key. */
export function toolsConfig(tools: ConfigValue | undefined, around: ConfigSurroundings): ToolsConfig {
  if (tools === undefined) return NO_TOOLS;
  const servers = fieldsOf(tools, ["servers"], []).optional("servers", (value) => [...entriesOf(value)]) ?? [];
  if (servers.length > SERVERS_MAX) throw invalidArgument(`${tools.at}.servers`, `must have at most ${SERVERS_MAX} servers`);
  return { servers: Object.fromEntries(servers.map(([name, value]) => [serverName(name, value.at), serverOf(value, around)])) };
}

function serverName(name: string, at: string): string {
  // Keys that are numbers would come before all others, whatever the file's order is.
  if (isServerName(name) && !/^\d+$/.test(name)) return name;
  throw invalidArgument(at, "must have a name of 1 to 32 letters, digits, - and single _, not of digits alone");
}

const TAKEN = ["timeoutMs", "outputBytesMax", "idempotent", "trustHints", "allow"] as const;

function serverOf(server: ConfigValue, around: ConfigSurroundings): McpServerOptions {
  const keys = entriesOf(server);
  if (keys.has("url") === keys.has("command")) throw invalidArgument(server.at, "must have one of the keys command and url");
  const fields = fieldsOf(server, [...(keys.has("url") ? ["url", "headers"] : ["command", "cwd", "env"]), ...TAKEN], []);
  const names = (value: ConfigValue): readonly string[] => textsOf(value, NAMES_MAX);
  return {
    reach: keys.has("url") ? httpOf(fields, around) : stdioOf(fields, around),
    timeoutMs: fields.optional("timeoutMs", (value) => countOf(value, TIMEOUT_MS_MAX)),
    outputBytesMax: fields.optional("outputBytesMax", (value) => countOf(value, OUTPUT_BYTES_LIMIT)),
    idempotent: fields.optional("idempotent", names),
    trustHints: fields.optional("trustHints", flagOf),
    allow: fields.optional("allow", names),
  };
}

function stdioOf(fields: Fields, around: ConfigSurroundings): StdioReach {
  return {
    kind: "stdio",
    command: fields.required("command", (value) => textsOf(value, ARGUMENTS_MAX)),
    cwd: resolve(around.folder, fields.optional("cwd", textOf) ?? "."),
    env: fields.optional("env", (value) => environmentOf(value, around)) ?? {},
  };
}

function httpOf(fields: Fields, around: ConfigSurroundings): HttpReach {
  return {
    kind: "http",
    url: fields.required("url", urlOf),
    headers: fields.optional("headers", (value) => headersOf(value, around)) ?? {},
  };
}

function urlOf(value: ConfigValue): string {
  const text = textOf(value);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw invalidArgument(value.at, "must be a URL of http or https");
  if (url.username !== "" || url.password !== "") throw invalidArgument(value.at, "must hold no credentials; give them as a header");
  return url.href;
}

const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
/** Headers whose values are secrets, by their names. */
const SECRET = /^(proxy-)?authorization$|cookie|key|token|secret|password/i;

function headersOf(headers: ConfigValue, around: ConfigSurroundings): Readonly<Record<string, string>> {
  const entries = [...entriesOf(headers)];
  if (entries.length > HEADERS_MAX) throw invalidArgument(headers.at, `must have at most ${HEADERS_MAX} headers`);
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (!HEADER_NAME.test(name)) throw invalidArgument(value.at, "must have the name of a header");
      const text = typeof value.value === "string" && !SECRET.test(name) ? value.value : secretOf(value, around);
      if (/^[\t\x20-\x7e]*$/.test(text)) return [name, text];
      throw invalidArgument(value.at, "must be visible ASCII characters, which a header can hold");
    }),
  );
}
