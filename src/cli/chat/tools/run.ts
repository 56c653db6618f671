/** `run`: a command of the shell, in a process group of its own. */

import { spawn, type ChildProcess } from "node:child_process";
import type { Clock } from "../../../base/index.ts";
import { plain } from "../../plain.ts";
import { countArg, reasonOf, Refusal, textArg, type LocalTool, type ToolOutcome, type ToolWorld } from "./local-tool.ts";
import { OutputKeeper } from "./output-keeper.ts";

const TIMEOUT_S = 120;
const TIMEOUT_S_MAX = 1_800;
/** From the polite signal to the one that cannot be refused. */
const KILL_AFTER_MS = 2_000;
/** From a command's end to when its output counts as over, whoever still has its pipes. */
const PIPES_AFTER_MS = 500;
const COMMAND_CHARS_MAX = 32_768;

/** Variables that a command does not get: they are this program's own. */
const WITHHELD = /^(HOLDFAST_(OPERATOR_)?TOKEN(_FILE)?|(OPENAI|ANTHROPIC|GEMINI)_API_KEY)$/;

export const RUN: LocalTool = {
  name: "run",
  description:
    "Runs a command of the shell in the current folder and returns what it writes, standard output and standard error as they come. It has no " +
    "standard input, and what it leaves running is ended with it, daemons apart. The person at the terminal is asked first.",
  parameters: {
    type: "object",
    properties: {
      command: { type: "string", minLength: 1, description: "The command line, for sh." },
      timeout_seconds: { type: "integer", minimum: 1, maximum: TIMEOUT_S_MAX, description: `${TIMEOUT_S} when it is left out.` },
    },
    required: ["command"],
    additionalProperties: false,
  },
  timeoutMs: 3_600_000,
  onlyLooks: false,
  prepare: async (args, world) => {
    try {
      const command = textArg(args, "command");
      if (command.length > COMMAND_CHARS_MAX) throw new Refusal(`command: must be at most ${COMMAND_CHARS_MAX} characters`);
      if (command.includes("\0")) throw new Refusal("command: must have no NUL");
      const timeoutMs = countArg(args, "timeout_seconds", TIMEOUT_S, TIMEOUT_S_MAX) * 1_000;
      return {
        summary: `run ${command}`,
        details: `run, for at most ${timeoutMs / 1_000} s:\n${command}`,
        consent: "ask",
        run: ({ signal }) => outcomeOf(command, timeoutMs, world, signal),
      };
    } catch (error) {
      return { refused: reasonOf(error) };
    }
  },
};

async function outcomeOf(command: string, timeoutMs: number, world: ToolWorld, signal: AbortSignal): Promise<ToolOutcome> {
  const { workspace, environment, clock } = world;
  const env = Object.fromEntries(Object.entries(environment).filter(([name]) => !WITHHELD.test(name)));
  const child = spawn("/bin/sh", ["-c", command], { cwd: workspace.root, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const output = new OutputKeeper();
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes: Buffer) => output.add(bytes));
  const stopping = new Stopping(child, (ms, task) => clock.after(ms, task));
  const timer = clock.after(timeoutMs, () => stopping.stop("time"));
  const onAbort = (): void => stopping.stop("cancel");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const { code, killedBy } = await closed(child);
    return { ...told(output, code, killedBy, stopping.why, timeoutMs), truncated: output.isCut };
  } catch (error) {
    return { success: false, result: `the command could not be started: ${reasonOf(error)}` };
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}

/** Ends a process and all that it began. */
class Stopping {
  readonly #child: ChildProcess;
  readonly #after: Clock["after"];
  why: "time" | "cancel" | undefined;

  constructor(child: ChildProcess, after: Clock["after"]) {
    this.#child = child;
    this.#after = after;
    child.once("exit", () => {
      // What the command left running has its pipes, and nobody to end it.
      this.#signal("SIGKILL");
      // What has left the group, as a daemon does, may have them as well. It is not waited for.
      const timer = after(PIPES_AFTER_MS, () => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      });
      child.once("close", () => timer.cancel());
    });
  }

  stop(why: "time" | "cancel"): void {
    this.why ??= why;
    this.#signal("SIGTERM");
    this.#after(KILL_AFTER_MS, () => this.#signal("SIGKILL"));
  }

  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch {
      // The group is gone.
    }
  }
}

function closed(child: ChildProcess): Promise<{ readonly code: number | null; readonly killedBy: NodeJS.Signals | null }> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, killedBy) => resolve({ code, killedBy }));
  });
}

function told(
  output: OutputKeeper,
  code: number | null,
  killedBy: NodeJS.Signals | null,
  why: Stopping["why"],
  timeoutMs: number,
): ToolOutcome {
  const text = plain(output.text);
  const end =
    why === "time"
      ? `[it was ended after ${timeoutMs / 1_000} s]`
      : why === "cancel"
        ? "[it was cancelled]"
        : code === null
          ? `[it was ended by ${killedBy ?? "a signal"}]`
          : code === 0
            ? ""
            : `[exit code ${code}]`;
  const result = [text, end].filter((part) => part !== "").join(text === "" || text.endsWith("\n") ? "" : "\n");
  return { success: code === 0 && why === undefined, result: result === "" ? "[no output]" : result, exitCode: code ?? undefined };
}
