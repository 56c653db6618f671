/** How a command runs: its screen, its signal, its errors and its exit code, the same for all of them. */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import { exitOfError, type ExitCode } from "./exit.ts";
import { Screen } from "./screen.ts";
import { Stop, Stopped } from "./stop.ts";

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

/** Runs a command's body and sets the process's exit code. Whatever is thrown is told on standard error. */
export async function perform(options: { readonly json: boolean }, body: (context: CommandContext) => Promise<ExitCode>): Promise<void> {
  const screen = new Screen({ json: options.json, stdout: process.stdout, stderr: process.stderr });
  using stop = new Stop();
  try {
    process.exitCode = await body({ screen, stop, signal: stop.signal });
  } catch (thrown) {
    process.exitCode = exitOf(thrown, stop.signal, screen);
  }
}

function exitOf(thrown: unknown, signal: AbortSignal, screen: Screen): ExitCode {
  const reason: unknown = signal.aborted ? signal.reason : thrown;
  if (reason instanceof Stopped) return reason.why === "interrupt" ? 130 : 141;
  const error = toHoldfastError(thrown);
  if (error.code === "internal" && process.env["HOLDFAST_DEBUG"] !== undefined) process.stderr.write(`${stackOf(thrown)}\n`);
  screen.error(error, error instanceof HintedError ? error.hint : undefined);
  return exitOfError(error.code);
}

function stackOf(thrown: unknown): string {
  const cause = thrown instanceof HoldfastError ? (thrown.cause ?? thrown) : thrown;
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}
