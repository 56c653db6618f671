/**
 * Runs a command of this repository and takes in its output. The command finds node_modules/.bin first on its path, so it runs
 * on the Node that the repository brings, has no standard input, and leads a process group of its own: whatever it started is
 * ended with it.
 */

import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BIN = join(ROOT, "node_modules", ".bin");
const IS_WINDOWS = process.platform === "win32";

export interface Outcome {
  /** The exit code; 1 for a command that a signal or the time limit ended or that could not be started. */
  readonly exitCode: number;
  /** Standard output and standard error as they came, interleaved. */
  readonly output: string;
  readonly timedOut: boolean;
}

export interface RunOptions {
  /** The working folder; the repository by default. */
  readonly cwd?: string;
  /** Variables on top of this process's own; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** When the command is ended, in milliseconds; 10 minutes by default. */
  readonly timeoutMs?: number;
}

const running = new Set<number>();

/** Runs `command` to its end. Never rejects: a command that cannot be started has a failed outcome. */
export function run(command: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const [file = "", ...parameters] = command;
  const env = { ...process.env, PATH: `${BIN}${delimiter}${process.env["PATH"] ?? ""}`, ...options.env };
  const child = spawn(file, parameters, {
    cwd: options.cwd ?? ROOT,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: !IS_WINDOWS,
    shell: IS_WINDOWS,
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  if (child.pid !== undefined) running.add(child.pid);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    endGroup(child.pid);
  }, options.timeoutMs ?? 600_000);
  return new Promise((resolve) => {
    const settle = (exitCode: number, note = ""): void => {
      clearTimeout(timer);
      endGroup(child.pid);
      if (child.pid !== undefined) running.delete(child.pid);
      resolve({ exitCode, output: Buffer.concat(chunks).toString() + note, timedOut });
    };
    child.on("error", (error) => settle(1, `${file}: ${error.message}\n`));
    child.on("exit", () => endGroup(child.pid));
    child.on("close", (code) => settle(code ?? 1, timedOut ? `${file}: ended at its time limit\n` : ""));
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined || !running.has(pid)) return;
  try {
    process.kill(IS_WINDOWS ? pid : -pid, "SIGKILL");
  } catch {
    // The group is gone already.
  }
}

/** Ends every running command and this process; for signals. */
export function endAll(exitCode: number): never {
  for (const pid of running) endGroup(pid);
  process.exit(exitCode);
}
