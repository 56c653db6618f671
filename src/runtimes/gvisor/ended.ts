/** What becomes of a turn whose sandbox has gone. */

import { ERROR_CODES, HoldfastError } from "../../base/errors.ts";
import { HarnessFailure } from "../../spi/index.ts";
import type { Exit } from "./container.ts";

/** A sandbox that was told to leave. */
export function stoppedError(): HoldfastError {
  return new HoldfastError("unavailable", "harness: its sandbox was stopped; an interrupted turn can be resumed");
}

/** A sandbox that left. */
export function endedError(exit: Exit): HoldfastError {
  return new HoldfastError("unavailable", `harness: its sandbox ${wordsOf(exit)}; an interrupted turn can be resumed`);
}

/** A sandbox that took too much. Its turn has failed: doing it again would end the same way. */
export function tooMuchMemory(bytesMax: number): HarnessFailure {
  const message = `harness: its sandbox had more than its ${bytesMax} bytes of memory; it was ended`;
  const cause = new HoldfastError("resource_exhausted", message);
  return new HarnessFailure(ERROR_CODES[cause.code].grpc, message, { cause });
}

/** A sandbox that does not answer. */
export function lateError(afterMs: number): HoldfastError {
  return new HoldfastError("unavailable", `harness: its sandbox did not answer within ${afterMs} ms of its start; it was ended`);
}

/** An incarnation that is not here any more. */
export function goneError(): HoldfastError {
  return new HoldfastError("unavailable", "sandbox: it is gone; restore the session from its snapshot");
}

function wordsOf(exit: Exit): string {
  if (exit.kind === "code") return `ended with exit code ${exit.code}`;
  if (exit.signal === "SIGXCPU") return "used all the processor time that it may use (SIGXCPU)";
  return `was ended by the signal ${exit.signal}`;
}
