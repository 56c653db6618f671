/** What becomes of a turn whose child has gone. */

import { HoldfastError } from "../../base/errors.ts";
import type { Exit } from "./child.ts";

/** A child that was told to leave. */
export function stoppedError(): HoldfastError {
  return new HoldfastError("unavailable", "harness: its process was stopped; an interrupted turn can be resumed");
}

/** A child that left. */
export function endedError(exit: Exit): HoldfastError {
  return new HoldfastError("unavailable", `harness: its process ${wordsOf(exit)}; an interrupted turn can be resumed`);
}

/** A child that does not answer. */
export function lateError(afterMs: number): HoldfastError {
  return new HoldfastError("unavailable", `harness: its process did not answer within ${afterMs} ms of its start; it was stopped`);
}

/** How it ended, in a few words for a caller: `ended with exit code 3`. */
function wordsOf(exit: Exit): string {
  if (exit.kind === "code") return `ended with exit code ${exit.code}`;
  if (exit.signal === "SIGXCPU") return "used all the processor time that it may use (SIGXCPU)";
  return `was ended by the signal ${exit.signal}`;
}
