/**
 * How standard output is lost: its reader went away, or it cannot be written (a full disk, a device that fails).
 *
 * Invariant: no error of a stream is thrown. Nobody can be told what standard error cannot take, and a server goes on without both.
 */

import { HoldfastError } from "../base/errors.ts";
import { exitOfError, type ExitCode } from "./exit.ts";
import type { Screen } from "./screen.ts";

/** What happened to standard output. */
export type OutputFault = { readonly kind: "closed" } | { readonly kind: "failed"; readonly error: NodeJS.ErrnoException };

/** The fault that an error of standard output stands for. */
export function outputFaultOf(error: NodeJS.ErrnoException): OutputFault {
  return error.code === "EPIPE" ? { kind: "closed" } : { kind: "failed", error };
}

/** Says what was lost, unless nobody wanted it any more. Returns the exit code. */
export function tellOutputFault(fault: OutputFault, screen: Screen): ExitCode {
  if (fault.kind === "closed") return 141;
  const error = lostOutput(fault.error);
  screen.error(error);
  return exitOfError(error.code);
}

/** Resolves once a stream has taken, or failed to take, all that it was given. Its `error` has come by then. */
export function flushed(output: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    // An empty write can fail too, so it is not made where nothing is left to be written. An error comes in the same turn of the loop.
    if (output.writableLength === 0) setImmediate(resolve);
    else output.write("", () => setImmediate(resolve));
  });
}

function lostOutput(cause: NodeJS.ErrnoException): HoldfastError {
  const isFull = cause.code === "ENOSPC" || cause.code === "EDQUOT" || cause.code === "EFBIG";
  const message = `standard output: it cannot be written${isFull ? ": there is no space left where it goes" : ""}`;
  return new HoldfastError(isFull ? "resource_exhausted" : "unavailable", message, { cause });
}
