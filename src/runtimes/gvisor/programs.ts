/** Finds the programs that a sandbox is made with, and what pins a memory image to them. */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, createReadStream, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { HoldfastError } from "../../base/errors.ts";
import type { GvisorSettings } from "./options.ts";

/** The programs of a sandbox. */
export interface Programs {
  readonly runsc: string;
  /** What `runsc --version` says it is. */
  readonly runscVersion: string;
  /** Starts runsc so that it dies with the host. */
  readonly setpriv: string;
  /** Makes the pipes. */
  readonly mkfifo: string;
  /** The harness's own, and its file where that is another one. */
  readonly command: string;
  readonly realCommand: string;
}

const run = promisify(execFile);
const VERSION_TIMEOUT_MS = 10_000;

/** The programs. Rejects with FAILED_PRECONDITION that says what is missing on this host. */
export async function findPrograms(settings: GvisorSettings, hostPath = process.env["PATH"] ?? ""): Promise<Programs> {
  if (process.platform !== "linux") throw missing("gVisor runs on Linux only");
  if (process.getuid?.() !== 0) throw missing("runsc needs root: start the host as root, or choose another runtime");
  const tool = (name: string, advice: string): string => {
    const file = executableAt(name, hostPath, "/");
    if (file === undefined) throw missing(advice);
    return file;
  };
  const runsc = tool(settings.runsc ?? "runsc", "runsc is not installed on this host; install gVisor (the package runsc)");
  const setpriv = tool("setpriv", "setpriv is not installed on this host; install the package util-linux");
  const mkfifo = tool("mkfifo", "mkfifo is not installed on this host; install the package coreutils");
  if (!isFolder(settings.cwd)) throw missing("the harness's working directory does not exist; correct cwd");
  const command = executableAt(settings.command, settings.env["PATH"] ?? hostPath, settings.cwd);
  if (command === undefined) throw missing("the harness's command is no program on this host; install it, or correct it");
  return { runsc, runscVersion: await versionOf(runsc), setpriv, mkfifo, command, realCommand: realpathSync(command) };
}

async function versionOf(runsc: string): Promise<string> {
  try {
    const { stdout } = await run(runsc, ["--version"], { timeout: VERSION_TIMEOUT_MS });
    const [, version] = /^runsc version (\S+)/m.exec(stdout) ?? [];
    if (version !== undefined) return version;
  } catch (cause) {
    throw missing("the program runsc cannot be run; install gVisor (the package runsc)", cause);
  }
  throw missing("the program runsc does not say its version; install gVisor (the package runsc)");
}

/** Digests of programs by their file and state: a program is read once. */
const digests = new Map<string, Promise<string>>();

/** The SHA-256 of a program, in hex. */
export function digestOf(file: string): Promise<string> {
  const { size, mtimeMs, ino } = statSync(file);
  const key = JSON.stringify([file, size, mtimeMs, ino]);
  const known = digests.get(key);
  if (known !== undefined) return known;
  const digest = sha256Of(file);
  digests.set(key, digest);
  digest.catch(() => digests.delete(key));
  return digest;
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}

/** The file of a program, looked up as a shell does; undefined where there is none. */
function executableAt(command: string, path: string, cwd: string): string | undefined {
  if (command.includes("/")) {
    const file = isAbsolute(command) ? command : resolve(cwd, command);
    return isExecutable(file) ? file : undefined;
  }
  const folders = path.split(delimiter).map((folder) => resolve(cwd, folder));
  return folders.map((folder) => join(folder, command)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function missing(what: string, cause?: unknown): HoldfastError {
  return new HoldfastError("failed_precondition", `runtime: ${what}`, { cause });
}
