/** Exit codes: the one table, from which the program exits, `--help` explains and the documentation is made. */

import type { ErrorCode } from "../base/errors.ts";
import { hanging } from "./columns.ts";

/** What each exit code means. */
export const EXIT_MEANINGS = {
  0: "done; for exec and resume, the turn completed; for replay --check, every turn replayed the same; for conformance, no promise was broken",
  1: "the turn failed or was cancelled; the chain is broken; a replay diverged; a promise was broken; an internal error",
  2: "wrong usage: an argument or a field of the request is wrong, such as a --harness that the server does not have",
  3: "no such session, or for the harness commands no such harness; for a command that only reads, neither a server nor a data folder",
  4: "the session's state forbids it, somebody else was faster, or the name is taken",
  5: "the server cannot be reached, is over a limit, or took too long; or the output cannot be written (a full disk): try again later",
  6: "not authenticated, or not allowed",
  7: "the turn waits for an approval",
  8: "for replay --check: none diverged, but some turns could not be replayed, or there were none; for conformance: every case was skipped",
  130: "interrupted (Ctrl-C)",
  141: "whoever read the output went away",
} as const;

export type ExitCode = keyof typeof EXIT_MEANINGS;

const EXIT_OF_ERROR: Readonly<Record<ErrorCode, ExitCode>> = {
  invalid_argument: 2,
  not_found: 3,
  already_exists: 4,
  failed_precondition: 4,
  aborted: 4,
  unauthenticated: 6,
  permission_denied: 6,
  resource_exhausted: 5,
  deadline_exceeded: 5,
  unavailable: 5,
  cancelled: 130,
  unimplemented: 1,
  data_loss: 1,
  internal: 1,
};

/** The exit code of an error. */
export function exitOfError(code: ErrorCode): ExitCode {
  return EXIT_OF_ERROR[code];
}

/** The table as `--help` shows it. */
export function exitTable(): string {
  const lines = Object.entries(EXIT_MEANINGS).map(([code, meaning]) => hanging(`  ${code.padStart(3)}  `, meaning));
  return ["Exit codes:", ...lines].join("\n");
}
