/** The rules of the wire, as faults: what becomes of a turn whose harness breaks one. */

import { HoldfastError } from "../base/errors.ts";
import { HarnessFailure } from "../spi/faults.ts";
import { STATUS_INTERNAL } from "./status.ts";

/**
 * The harness broke the protocol. The host gives the turn up: END FAILED says which rule, and a later try would go the same way.
 * `rule` is journaled, so it holds no words of the harness's.
 */
export function brokenProtocol(rule: string): HarnessFailure {
  return new HarnessFailure(STATUS_INTERNAL, `harness wire: ${rule}`);
}

/** The line is closed. The turn is interrupted and can be resumed. */
export function lineClosed(cause?: unknown): HoldfastError {
  return new HoldfastError("unavailable", "harness: the line to it was closed; its turn is interrupted and can be resumed", { cause });
}

/** No answer came where one is due. */
export function noAnswer(to: string, afterMs: number): HoldfastError {
  return new HoldfastError("unavailable", `harness: it did not answer ${to} within ${afterMs} ms`);
}

/** What a line threw, as what becomes of the turns on it. */
export function lineFault(error: unknown): Error {
  if (error instanceof HarnessFailure) return error;
  if (error instanceof HoldfastError) {
    if (error.code === "invalid_argument") return brokenProtocol("the harness sent bytes that are no frame");
    if (error.code === "resource_exhausted") return brokenProtocol("the harness sent a frame that is larger than the host takes");
    return error;
  }
  return lineClosed(error);
}

/** A broken protocol outside a turn: nothing is recorded, the caller is told. */
export function outsideTurn(error: Error): Error {
  return error instanceof HarnessFailure ? new HoldfastError("failed_precondition", error.message, { cause: error }) : error;
}

/** Why a turn is cancelled, as a Cancel frame has it. */
export type CancelWord = "USER" | "TIMEOUT" | "INTERNAL";

/** The word for what fired a turn's signal: the controller's own cancels name theirs, everything else is the host's affair. */
export function cancelWordOf(reason: unknown): CancelWord {
  if (!(reason instanceof HoldfastError) || reason.code !== "cancelled") return "INTERNAL";
  const word = /\((USER|TIMEOUT|INTERNAL)\)$/.exec(reason.message)?.[1];
  return word === "USER" || word === "TIMEOUT" ? word : "INTERNAL";
}
