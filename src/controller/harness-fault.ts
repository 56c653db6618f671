/** What a harness's throw means to its turn. */

import { ERROR_CODES, HoldfastError } from "../base/errors.ts";
import type { Log, LogFields } from "../base/ports.ts";

/** Logs a throw. A harness's own words may hold anything, so the log gets the error's name and where it was thrown, not its message. */
export function logThrow(log: Log, error: unknown, fields: LogFields): void {
  log.log("warn", "a harness threw; its turn is interrupted", { ...fields, ...thrownFields(error) });
}

function thrownFields(error: unknown): LogFields {
  const thrown = error instanceof Error ? error : undefined;
  return { error: thrown?.name ?? typeof error, at: thrown === undefined ? undefined : firstFrame(thrown) };
}

/** Where an error was thrown. Its message, which the stack begins with, may itself look like a frame. */
function firstFrame(error: Error): string | undefined {
  const { stack = "", message } = error;
  const messageAt = stack.indexOf(message);
  const frames = messageAt < 0 ? "" : stack.slice(messageAt + message.length);
  return /^ {4}at (.*)$/m.exec(frames)?.[1];
}

/** A harness that goes on after it was told to park. */
export function parkIgnoredError(): HoldfastError {
  return new HoldfastError("failed_precondition", "harness: it ended although its turn waits for a decision; it must let the park pass");
}

/** The error that interrupts a turn whose harness threw `error`. */
export function harnessFault(error: unknown): HoldfastError {
  // A harness may be plain JavaScript: only a code of the closed set is taken at its word.
  if (error instanceof HoldfastError && Object.hasOwn(ERROR_CODES, error.code)) return error;
  return new HoldfastError("internal", "harness: it threw; the turn is interrupted and can be resumed", { cause: error });
}

/** Thrown inside a turn that outgrew a limit: the host gives up, END FAILED. */
export class TurnLimitError extends HoldfastError {}
