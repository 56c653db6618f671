/**
 * The harnesses of the config file: where each runs and how it is started.
 *
 * Invariant: what was read is whole. Paths are absolute, defaults are filled in, files and variables that it names have been read.
 */

import { resolve } from "node:path";
import { invalidArgument } from "../base/index.ts";
import { harnessAddress, harnessName } from "../placement/index.ts";
import { environmentOf, fieldsOf, fileText, secretText, type ConfigSurroundings, type Fields } from "./config-fields.ts";
import { choiceOf, countOf, entriesOf, flagOf, textOf, textsOf, type ConfigValue } from "./config-value.ts";

/** A harness of the host's own that lives outside of the host's process. */
export type HarnessConfig = ProcessHarness | RemoteHarness | QuickjsHarness | GvisorHarness;

/** What is started of a program. */
export interface ProgramConfig {
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  /** An absolute path. Default: the config file's folder. */
  readonly cwd: string;
  /** The whole environment: nothing of the host's own is passed on but PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly memoryBytesMax?: number | undefined;
  readonly cpuSecondsMax?: number | undefined;
}

/** A child process for each session. */
export interface ProcessHarness extends ProgramConfig {
  readonly runtime: "process";
  /** Whether it is confined: no network, a private file system. Default false. */
  readonly confine: boolean;
  /** How it is spoken to. Default `stdio`. */
  readonly line: "stdio" | "unix";
}

/** Served elsewhere. */
export interface RemoteHarness {
  readonly runtime: "remote";
  /** `unix:///path` or `host:port`. */
  readonly address: string;
  /** Undefined for cleartext. */
  readonly tls?: RemoteTls | undefined;
}

/** How a harness elsewhere is known, and how the host is known to it; PEM. */
export interface RemoteTls {
  /** The authorities to trust. Default: those of Node. */
  readonly ca?: string | undefined;
  /** The host's own certificate and key; both or neither. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name in the harness's certificate, where it is not the address's host. */
  readonly serverName?: string | undefined;
}

/** One script in a WebAssembly VM for each session. */
export interface QuickjsHarness {
  readonly runtime: "quickjs";
  /** The path of the script, absolute; `builtin:counter` or `builtin:repl` for one that comes with the host. */
  readonly script: string;
  readonly memoryBytesMax?: number | undefined;
}

/** An unmodified program in a gVisor sandbox for each session. */
export interface GvisorHarness extends ProgramConfig {
  readonly runtime: "gvisor";
}

const HARNESSES_MAX = 256;
const ARGUMENTS_MAX = 1_024;
const MEMORY_BYTES_MAX = 2 ** 44;
const CPU_SECONDS_MAX = 365 * 86_400;

/** The harnesses by their names. Throws INVALID_ARGUMENT that names the path of the key. */
export function harnessConfigs(harnesses: ConfigValue | undefined, around: ConfigSurroundings): Readonly<Record<string, HarnessConfig>> {
  if (harnesses === undefined) return {};
  const entries = [...entriesOf(harnesses)];
  if (entries.length > HARNESSES_MAX) throw invalidArgument(harnesses.at, `must have at most ${HARNESSES_MAX} harnesses`);
  return Object.fromEntries(entries.map(([name, value]) => [harnessName(name, value.at), harnessConfig(value, around)]));
}

const RUNTIMES = ["process", "remote", "quickjs", "gvisor"] as const;
const LINES = ["stdio", "unix"] as const;

function harnessConfig(harness: ConfigValue, around: ConfigSurroundings): HarnessConfig {
  const runtime = entriesOf(harness).get("runtime") ?? { at: `${harness.at}.runtime`, value: undefined };
  switch (choiceOf(runtime, RUNTIMES)) {
    case "process": {
      const fields = fieldsOf(harness, [...PROGRAM_KEYS, "confine", "line"]);
      const confine = fields.optional("confine", flagOf) ?? false;
      const line = fields.optional("line", (value) => choiceOf(value, LINES)) ?? "stdio";
      return { runtime: "process", ...programOf(fields, around), confine, line };
    }
    case "gvisor":
      return { runtime: "gvisor", ...programOf(fieldsOf(harness, PROGRAM_KEYS), around) };
    case "quickjs": {
      const fields = fieldsOf(harness, ["script", "memoryBytesMax"]);
      return { runtime: "quickjs", script: fields.required("script", (value) => scriptOf(textOf(value), around)), ...memoryOf(fields) };
    }
    case "remote": {
      const fields = fieldsOf(harness, ["address", "tls"]);
      const address = fields.required("address", (value) => harnessAddress(textOf(value), value.at));
      const tls = fields.optional("tls", (value) => tlsOf(value, address, around));
      return { runtime: "remote", address, ...(tls === undefined ? {} : { tls }) };
    }
  }
}

/** A path, or the name of one that comes with the host. */
function scriptOf(script: string, { folder }: ConfigSurroundings): string {
  return script.startsWith("builtin:") ? script : resolve(folder, script);
}

const PROGRAM_KEYS = ["command", "cwd", "env", "memoryBytesMax", "cpuSecondsMax"] as const;

function programOf(fields: Fields, around: ConfigSurroundings): ProgramConfig {
  const cpuSecondsMax = fields.optional("cpuSecondsMax", (value) => countOf(value, CPU_SECONDS_MAX));
  return {
    command: fields.required("command", (value) => textsOf(value, ARGUMENTS_MAX)),
    cwd: resolve(around.folder, fields.optional("cwd", textOf) ?? "."),
    env: fields.optional("env", (value) => environmentOf(value, around)) ?? {},
    ...memoryOf(fields),
    ...(cpuSecondsMax === undefined ? {} : { cpuSecondsMax }),
  };
}

function memoryOf(fields: Fields): { readonly memoryBytesMax?: number } {
  const memoryBytesMax = fields.optional("memoryBytesMax", (value) => countOf(value, MEMORY_BYTES_MAX));
  return memoryBytesMax === undefined ? {} : { memoryBytesMax };
}

function tlsOf(tls: ConfigValue, address: string, around: ConfigSurroundings): RemoteTls {
  if (address.startsWith("unix:")) throw invalidArgument(tls.at, "is for host:port addresses");
  const fields = fieldsOf(tls, ["caFile", "certFile", "keyFile", "serverName"], []);
  const file = (value: ConfigValue): string => fileText(value, around);
  const given = {
    ca: fields.optional("caFile", file),
    cert: fields.optional("certFile", file),
    key: fields.optional("keyFile", (value) => secretText(value, around)),
    serverName: fields.optional("serverName", textOf),
  };
  if ((given.cert === undefined) !== (given.key === undefined))
    throw invalidArgument(tls.at, "must have both certFile and keyFile, or neither");
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
