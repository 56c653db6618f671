/** The `holdfast` command as a process of its own, run from the sources. */

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";

const MAIN = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");

export interface CommandOptions {
  /** Variables on top of a clean environment: none of Holdfast's own, no colours. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** What it reads on standard input; nothing by default. */
  readonly stdin?: string;
  /** Takes what kills it. By default it is killed when the test is over; what outlives tests names somebody else. */
  readonly owner?: (kill: () => void) => void;
}

export interface CommandResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs. It is killed at the end of the test, or by its owner, if it is still there. */
export interface RunningCommand {
  readonly child: ChildProcessWithoutNullStreams;
  readonly result: Promise<CommandResult>;
  /** Resolves once what it wrote (to standard output by default) holds `text`. Rejects when it ends before. */
  said(text: string, stream?: "stdout" | "stderr"): Promise<void>;
}

/** Starts a command. */
export function start(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const child = spawn(process.execPath, [MAIN, ...args], { cwd: options.cwd, env: { ...cleanEnvironment(), ...options.env } });
  const written = { stdout: "", stderr: "" };
  const listeners = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      written[name] += text;
      for (const listener of listeners) listener();
    });
  }
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.stdin ?? "");
  const result = new Promise<CommandResult>((resolve) => {
    child.on("close", (exitCode) => {
      resolve({ exitCode, ...written });
      for (const listener of listeners) listener();
    });
  });
  const { owner = onTestFinished } = options;
  owner(() => void child.kill("SIGKILL"));
  return {
    child,
    result,
    said: (text, stream = "stdout") =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          if (written[stream].includes(text)) resolve();
          else if (child.exitCode === null && child.signalCode === null) return;
          else reject(new Error(`the command ended and had not said ${JSON.stringify(text)}: ${JSON.stringify(written)}`));
          listeners.delete(look);
        };
        listeners.add(look);
        look();
      }),
  };
}

/** Runs a command to its end. */
export function command(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return start(args, options).result;
}

/** What a command has of this process's environment. */
const KEPT = /^(PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|TEMP|TMP|LANG|LC_.+|TZ|TERM|NODE_V8_COVERAGE|NODE_COMPILE_CACHE)$/i;

/** An environment that is the same wherever tests run: much steers a command or Node itself, CI and a terminal's name among it. */
export function cleanEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => KEPT.test(name));
  // The port beside one that a test names may be anybody's.
  return { ...Object.fromEntries(own), NO_COLOR: "1", HOLDFAST_REGISTRY_LISTEN: "127.0.0.1:0" };
}
