/** How a command runs: its screen, its signal, its errors and its exit code, the same for all of them. */

import { HoldfastError, invalidArgument, toHoldfastError } from "../base/errors.ts";
import { exitOfError, type ExitCode } from "./exit.ts";
import { flushed, tellOutputFault } from "./output-fault.ts";
import { Screen } from "./screen.ts";
import { Stop } from "./stop.ts";

/** What a command has to work with. */
export interface CommandContext {
  readonly screen: Screen;
  readonly stop: Stop;
  /** Fires when the command is to stop. */
  readonly signal: AbortSignal;
}

/** An error whose remedy a person should be told. */
export class HintedError extends HoldfastError {
  override readonly name = "HintedError";
  readonly hint: string;

  constructor(error: HoldfastError, hint: string) {
    super(error.code, error.message, { field: error.field, details: error.details, cause: error });
    this.hint = hint;
  }
}

/** How a command is run. */
export interface PerformOptions {
  readonly json: boolean;
  /** Whether it goes on when standard output cannot be written, as a server does. */
  readonly outlivesOutput?: boolean | undefined;
}

/** Runs a command's body and sets the process's exit code. Whatever is thrown is told on standard error. */
export async function perform(options: PerformOptions, body: (context: CommandContext) => Promise<ExitCode>): Promise<void> {
  const { json, outlivesOutput } = options;
  const screen = new Screen({ json, stdout: process.stdout, stderr: process.stderr });
  using stop = new Stop({ outlivesOutput });
  const exit = await exitOf(body, { screen, stop, signal: stop.signal });
  await flushed(process.stdout);
  // A result that went nowhere is none, whatever it was.
  process.exitCode = stop.outputFault === undefined || stop.leaving ? exit : tellOutputFault(stop.outputFault, screen);
}

async function exitOf(body: (context: CommandContext) => Promise<ExitCode>, context: CommandContext): Promise<ExitCode> {
  try {
    return await body(context);
  } catch (thrown) {
    return exitOfThrown(thrown, context);
  }
}

function exitOfThrown(thrown: unknown, { screen, stop }: CommandContext): ExitCode {
  if (stop.leaving) return 130;
  const error = isFolderGone(thrown) ? folderGone(thrown) : toHoldfastError(thrown);
  // Why this was thrown is told with the fault itself.
  if (stop.outputFault !== undefined) return exitOfError(error.code);
  if (error.code === "internal" && process.env["HOLDFAST_DEBUG"] !== undefined) process.stderr.write(`${stackOf(thrown)}\n`);
  screen.error(error, error instanceof HintedError ? error.hint : undefined);
  return exitOfError(error.code);
}

/** Whether the current folder was removed under the process: whatever is named relative to it cannot be found then. */
function isFolderGone(thrown: unknown): boolean {
  return thrown instanceof Error && "syscall" in thrown && thrown.syscall === "uv_cwd";
}

function folderGone(cause: unknown): HoldfastError {
  return invalidArgument("current folder", "must be there, and was removed; change to another one", { cause });
}

function stackOf(thrown: unknown): string {
  const cause = thrown instanceof HoldfastError ? (thrown.cause ?? thrown) : thrown;
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}
