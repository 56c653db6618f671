/** What a refused append means to a caller. */

import { unreachable } from "../base/assert.ts";
import { HoldfastError } from "../base/errors.ts";
import type { AppendOutcome } from "../journal/index.ts";

/** An append that was made. */
export type Appended = Extract<AppendOutcome, { kind: "appended" }>;

/** The append's success, or the error that its refusal is. */
export function appendedOrThrow(outcome: AppendOutcome): Appended {
  switch (outcome.kind) {
    case "appended":
      return outcome;
    case "conflict":
      throw new HoldfastError("aborted", `session: its last_seq is ${outcome.lastSeq}, not the expected one; read the session, then retry`);
    case "held":
      throw new HoldfastError("aborted", "session: another turn of it is running; wait for its end, then retry");
    case "fenced":
      throw new HoldfastError("aborted", "session: another host has taken it over; read the session, then retry");
    case "not-found":
      throw new HoldfastError("not_found", "session: no session has this uid");
    case "deleted":
      throw deletedError();
    default:
      return unreachable(outcome);
  }
}

/** What everything that would change a deleted session gets. */
export function deletedError(): HoldfastError {
  return new HoldfastError("failed_precondition", "session: it is deleted; its records can still be read");
}

/** The host takes nothing up any more. */
export function closingError(): HoldfastError {
  return new HoldfastError("unavailable", "host: it is shutting down; retry with another, or later");
}
