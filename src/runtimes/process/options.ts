/** How a process runtime is set up, and what holds where nothing is said. */

import { resolve } from "node:path";
import { invalidArgument } from "../../base/errors.ts";
import { SILENT_LOG, type Clock, type Log, type Random } from "../../base/ports.ts";
import type { LineHarnessOptions, WireLimits } from "../../harness-wire/index.ts";
import { isHidden } from "../../node/index.ts";

/** What a confined child may see of the host beside the system's programs and its working directory. */
export interface Confinement {
  /** Paths that it sees and cannot write. */
  readonly readOnly?: readonly string[] | undefined;
  /** Paths that it may write to. */
  readonly writable?: readonly string[] | undefined;
  /** The most bytes of its private `/tmp`, and of its `/dev/shm`. Default 64 MiB each. */
  readonly tmpBytesMax?: number | undefined;
}

/** What a process runtime is made of. */
export interface ProcessRuntimeOptions {
  /** The program: a path, or a name that is looked up in PATH. */
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** The working directory. */
  readonly cwd: string;
  /** The environment. Of the host's own nothing is passed on but PATH, and what `inheritEnv` names. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Names of the host's environment that are passed on with their values. */
  readonly inheritEnv?: readonly string[] | undefined;
  /** How host and child talk: the child's standard streams (the default), or gRPC on a unix socket in a private folder. */
  readonly line?: "stdio" | "unix" | undefined;
  /** The most bytes of private memory that a process of the child may have mapped for writing (RLIMIT_DATA). Default: no limit. */
  readonly memoryBytesMax?: number | undefined;
  /** The most seconds of processor time that a process of the child may use over its life (RLIMIT_CPU). Default: no limit. */
  readonly cpuSecondsMax?: number | undefined;
  /** Confines the child with bubblewrap; `true` for the bounds where nothing is said. Default: not confined. */
  readonly confine?: Confinement | boolean | undefined;
  /**
   * Files and folders that a confined child sees as empty although they lie where it sees: the host's data, its secrets. Looked up at each
   * child's start; one that is missing then, or replaced later, is seen once it is there. Without confinement nothing is hidden.
   */
  readonly hidden?: readonly string[] | undefined;
  /** How long a child may take from its start until it answers. Default 30,000. */
  readonly startTimeoutMs?: number | undefined;
  /** How long a child that is told to stop may take. Default 2,000. */
  readonly stopGraceMs?: number | undefined;
  /** How much of the end of what a child writes to standard error is kept for the log. Default 16 KiB. */
  readonly stderrBytesMax?: number | undefined;
  /** How many children may be starting at once; further ones wait their turn. Default: twice the processors. */
  readonly startsAtOnceMax?: number | undefined;
  readonly limits?: Partial<WireLimits> | undefined;
  /** Opens the host's services to a harness on a unix socket that speaks nothing but the contract. */
  readonly grant?: LineHarnessOptions["grant"];
  readonly ports: { readonly clock: Clock; readonly random: Random };
  readonly log?: Log | undefined;
}

/** The options with nothing left open. */
export interface ProcessSettings extends ProcessRuntimeOptions {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly line: "stdio" | "unix";
  readonly confinement: Confinement | undefined;
  readonly hidden: readonly string[];
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  readonly stderrBytesMax: number;
  readonly log: Log;
}

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The options, checked. Throws INVALID_ARGUMENT naming the one that is wrong. */
export function processSettings(options: ProcessRuntimeOptions, hostEnv: Readonly<Record<string, string | undefined>>): ProcessSettings {
  const { command, args = [], confine = false } = options;
  if (command === "" || [command, options.cwd, ...args].some((text) => text.includes("\0"))) {
    throw invalidArgument("command", "must name a program; neither it, its arguments nor its working directory may hold a NUL");
  }
  const cwd = resolve(options.cwd);
  if (confine !== false && cwd === "/") throw invalidArgument("cwd", "must be a folder that a confined child may read; / is everything");
  const hidden = (options.hidden ?? []).map((path) => resolve(path));
  if (confine !== false && isHidden(cwd, hidden)) {
    throw invalidArgument(
      "cwd",
      "must not lie in what is hidden from a confined child, such as the host's data folder; give it another folder",
    );
  }
  checkWhole("memory_bytes_max", options.memoryBytesMax);
  checkWhole("cpu_seconds_max", options.cpuSecondsMax);
  return {
    ...options,
    args,
    cwd,
    env: environmentOf(options, hostEnv),
    line: options.line ?? "stdio",
    confinement: confine === true ? {} : confine === false ? undefined : confine,
    hidden,
    startTimeoutMs: options.startTimeoutMs ?? 30_000,
    stopGraceMs: options.stopGraceMs ?? 2_000,
    stderrBytesMax: options.stderrBytesMax ?? 16 * 1024,
    log: options.log ?? SILENT_LOG,
  };
}

function environmentOf(
  { env = {}, inheritEnv = [] }: ProcessRuntimeOptions,
  hostEnv: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const name of ["PATH", ...inheritEnv]) {
    const value = hostEnv[name];
    if (value !== undefined) environment[name] = value;
  }
  for (const [name, value] of Object.entries(env)) {
    if (!ENV_NAME.test(name) || value.includes("\0")) throw invalidArgument("env", "must hold names of letters, digits and _, and no NUL");
    environment[name] = value;
  }
  return environment;
}

function checkWhole(field: string, value: number | undefined): void {
  if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) throw invalidArgument(field, "must be a whole number above 0");
}
