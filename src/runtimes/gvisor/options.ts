/** How a gVisor runtime is set up, and what holds where nothing is said. */

import { resolve } from "node:path";
import { invalidArgument } from "../../base/errors.ts";
import { SILENT_LOG, type Clock, type Log, type Random } from "../../base/ports.ts";
import type { WireLimits } from "../../harness-wire/index.ts";
import type { BlobStore } from "../../spi/index.ts";
import { isHidden } from "../../node/index.ts";

/** What a gVisor runtime is made of. */
export interface GvisorRuntimeOptions {
  /** The program: a path, or a name that is looked up in PATH. */
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** The working directory. The sandbox sees it, read-only. */
  readonly cwd: string;
  /** The environment. Of the host's own nothing is passed on but PATH. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Further paths that the sandbox sees, read-only. */
  readonly readOnly?: readonly string[] | undefined;
  /** Files and folders that the sandbox sees as empty although they lie where it sees: the host's data, its secrets. */
  readonly hidden?: readonly string[] | undefined;
  /** The most bytes of the sandbox's `/tmp`, which is memory. Default 64 MiB. */
  readonly tmpBytesMax?: number | undefined;
  /**
   * The most bytes of memory that the sandbox may have, its `/tmp` included. It is looked at a few times a second: what is over it is
   * ended then. Default: no limit.
   */
  readonly memoryBytesMax?: number | undefined;
  /** The most seconds of processor time of the harness's own process over its life, restored ones included. Default: no limit. */
  readonly cpuSecondsMax?: number | undefined;
  /** Where captures are stored. */
  readonly blobs: BlobStore;
  /** Where sandboxes have their state while they live, and images while they are used. Default: the system's temporary folder. */
  readonly folder?: string | undefined;
  /** The program runsc. Default: the one in PATH. */
  readonly runsc?: string | undefined;
  /** How runsc runs the sandbox's code: `ptrace`, `systrap`, `kvm`. Default: what this runsc takes by itself. */
  readonly platform?: string | undefined;
  /** How long a sandbox may take from its start, or its restore, until it answers. Default 30,000. */
  readonly startTimeoutMs?: number | undefined;
  /** How long a sandbox that is told to stop may take. Default 2,000. */
  readonly stopGraceMs?: number | undefined;
  /** How long one command of runsc may take: a pause, a checkpoint. Default 60,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** How much of the end of what a sandbox writes to standard error is kept for the log. Default 16 KiB. */
  readonly stderrBytesMax?: number | undefined;
  /** How many sandboxes may be starting at once; further ones wait their turn. Default: twice the processors. */
  readonly startsAtOnceMax?: number | undefined;
  readonly limits?: Partial<WireLimits> | undefined;
  readonly ports: { readonly clock: Clock; readonly random: Random };
  readonly log?: Log | undefined;
}

/** The options with nothing left open. */
export interface GvisorSettings extends GvisorRuntimeOptions {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly readOnly: readonly string[];
  readonly hidden: readonly string[];
  readonly tmpBytesMax: number;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  readonly commandTimeoutMs: number;
  readonly stderrBytesMax: number;
  readonly log: Log;
}

const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Where a sandbox has something of its own. */
const OWN_FOLDERS: readonly string[] = ["/", "/tmp", "/proc", "/dev"];

/** The options, checked. Throws INVALID_ARGUMENT naming the one that is wrong. */
export function gvisorSettings(options: GvisorRuntimeOptions, hostPath: string | undefined): GvisorSettings {
  const { command, args = [], env = {}, readOnly = [] } = options;
  if (command === "" || [command, options.cwd, ...args, ...readOnly].some((text) => text.includes("\0"))) {
    throw invalidArgument("command", "must name a program; neither it, its arguments nor a path may hold a NUL");
  }
  const cwd = resolve(options.cwd);
  if (OWN_FOLDERS.includes(cwd)) throw invalidArgument("cwd", `must be a folder that a sandbox may read; ${cwd} is its own`);
  const hidden = (options.hidden ?? []).map((path) => resolve(path));
  if (isHidden(cwd, hidden)) {
    throw invalidArgument("cwd", "must not lie in what is hidden from a sandbox, such as the host's data folder; give it another folder");
  }
  for (const [name, value] of Object.entries(env)) {
    if (!ENV_NAME.test(name) || value.includes("\0")) throw invalidArgument("env", "must hold names of letters, digits and _, and no NUL");
  }
  checkWhole("memory_bytes_max", options.memoryBytesMax);
  checkWhole("cpu_seconds_max", options.cpuSecondsMax);
  checkWhole("tmp_bytes_max", options.tmpBytesMax);
  return {
    ...options,
    args,
    cwd,
    env: { ...(hostPath === undefined ? {} : { PATH: hostPath }), ...env },
    readOnly: readOnly.map((path) => resolve(path)),
    hidden,
    tmpBytesMax: options.tmpBytesMax ?? 64 * 1024 * 1024,
    startTimeoutMs: options.startTimeoutMs ?? 30_000,
    stopGraceMs: options.stopGraceMs ?? 2_000,
    commandTimeoutMs: options.commandTimeoutMs ?? 60_000,
    stderrBytesMax: options.stderrBytesMax ?? 16 * 1024,
    log: options.log ?? SILENT_LOG,
  };
}

function checkWhole(field: string, value: number | undefined): void {
  if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) throw invalidArgument(field, "must be a whole number above 0");
}
