/**
 * Errors on their way over a line. What is for the author of a harness, or for its host, travels as a gRPC status code and a message;
 * a message of the host's never holds more than a HoldfastError's does.
 */

import { codeOfGrpcStatus, ERROR_CODES, HoldfastError, toHoldfastError } from "../base/errors.ts";

/** The gRPC status of a harness that threw something that has no code: UNKNOWN. */
export const STATUS_UNKNOWN = 2;
export const STATUS_CANCELLED = 1;
export const STATUS_INTERNAL = 13;

/** A code and what it is about. */
export interface WireError {
  readonly code: number;
  readonly description: string;
}

/** An error as it is sent. */
export function wireErrorOf(error: unknown): WireError {
  const fault = toHoldfastError(error);
  return { code: fault.facts.grpc, description: fault.message.toWellFormed() };
}

/** What a harness threw as it is sent: anything but an error with a code of ours is UNKNOWN, and its words are for a developer. */
export function thrownErrorOf(error: unknown): WireError {
  if (error instanceof HoldfastError && Object.hasOwn(ERROR_CODES, error.code)) return wireErrorOf(error);
  const words = error instanceof Error ? `${error.name}: ${error.message}` : typeof error;
  return { code: STATUS_UNKNOWN, description: words.slice(0, 1_000).toWellFormed() };
}

/** An error as it arrived. A status outside the closed set is `internal`. */
export function errorOfWire(error: WireError | undefined): HoldfastError {
  if (error === undefined) return new HoldfastError("internal", "the host gave no reason");
  return new HoldfastError(codeOfGrpcStatus(error.code) ?? "internal", error.description);
}

/** Thrown out of a run whose harness gave up with something that has no code. Its words are the harness's: nothing records them. */
export class HarnessThrewError extends Error {
  override readonly name = "HarnessThrewError";
}

/** The reason for which a harness gave up, as its host throws it. */
export function thrownErrorOfWire(error: WireError): Error {
  const code = codeOfGrpcStatus(error.code);
  return code === undefined ? new HarnessThrewError(error.description) : new HoldfastError(code, error.description);
}
