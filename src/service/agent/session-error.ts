/**
 * What goes wrong in a conversation, as a SessionError.
 *
 * Invariant: a message is in this host's own words. What a provider, a harness or a library said never gets in.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, type ErrorCode } from "../../base/errors.ts";
import { SessionErrorSchema, type SessionResponse } from "../../gen/roz/v1/agent_pb.ts";

/** What a stream says. */
export type Said = Exclude<SessionResponse["response"], { readonly case: undefined }>;

/** The codes of SessionErrors. `taken_over` and `permission_denied` are ours, the others are the contract's. */
export type SessionErrorCode =
  | "no_session"
  | "already_started"
  | "turn_in_progress"
  | "no_active_turn"
  | "unknown_tool_call"
  | "invalid_argument"
  | "unauthenticated"
  | "model_error"
  | "agent_error"
  | "internal"
  | "taken_over"
  | "permission_denied";

/** A request that the state of its conversation forbids. */
export class Refusal extends HoldfastError {
  readonly sessionCode: SessionErrorCode;
  readonly retryable: boolean;

  constructor(sessionCode: SessionErrorCode, message: string, retryable = false) {
    super("failed_precondition", message);
    this.sessionCode = sessionCode;
    this.retryable = retryable;
  }
}

/** A SessionError. */
export function sessionError(code: SessionErrorCode, message: string, retryable = false): Said {
  return { case: "error", value: create(SessionErrorSchema, { code, message, retryable }) };
}

/** The SessionError for a fault. */
export function saidOf(fault: HoldfastError): Said {
  if (fault instanceof Refusal) return sessionError(fault.sessionCode, fault.message, fault.retryable);
  const retryable = fault.facts.retry !== "never";
  // Too many or too large things of a request are for its sender to change; what this host is short of passes.
  if (fault.code === "resource_exhausted" && fault.field !== undefined) return sessionError("invalid_argument", fault.message);
  return sessionError(CODES[fault.code], fault.message, retryable);
}

const CODES: Readonly<Record<ErrorCode, SessionErrorCode>> = {
  invalid_argument: "invalid_argument",
  not_found: "no_session",
  already_exists: "invalid_argument",
  failed_precondition: "agent_error",
  aborted: "turn_in_progress",
  unauthenticated: "unauthenticated",
  permission_denied: "permission_denied",
  resource_exhausted: "agent_error",
  deadline_exceeded: "internal",
  cancelled: "internal",
  unavailable: "internal",
  unimplemented: "agent_error",
  data_loss: "internal",
  internal: "internal",
};

/** What is said of a model call that failed for good. */
const MODEL_FAULTS: Partial<Record<ErrorCode, string>> = {
  invalid_argument: "model: the request was refused as invalid; change the message, or start a session without what the model cannot take",
  failed_precondition: "model: it cannot be asked here; choose another model, or have the server given access to this one",
  unauthenticated: "model: this server is not let in by the model's provider; its operator can change that",
  permission_denied: "model: this server may not use it; choose another model, or have the server given access to this one",
  not_found: "model: its provider does not have it; choose another model",
  resource_exhausted: "model: a limit of its provider is reached; try again later",
  deadline_exceeded: "model: it did not answer in time; try again",
  unavailable: "model: it is not able to answer now; try again later",
};

/** A turn whose model call failed for good with a code of the closed set. */
export function modelError(code: ErrorCode): Said {
  return sessionError("model_error", MODEL_FAULTS[code] ?? "model: the call failed", isPassing(code));
}

/** What is said of an agent that gave up. */
const AGENT_FAULTS: Partial<Record<ErrorCode, string>> = {
  invalid_argument: "agent: it was given what it cannot take; see the session's journal",
  failed_precondition: "agent: the state of this server or of the session forbids it to go on; see the session's journal",
  resource_exhausted: "agent: a limit or a budget is reached; a further message may go on from here",
  unavailable: "agent: it cannot be reached now; try again later",
};

/** A turn whose agent gave up or failed with a code of the closed set. */
export function agentError(code: ErrorCode): Said {
  return sessionError("agent_error", AGENT_FAULTS[code] ?? "agent: it failed; see the session's journal", isPassing(code));
}

function isPassing(code: ErrorCode): boolean {
  return code === "unavailable" || code === "resource_exhausted" || code === "deadline_exceeded" || code === "aborted";
}
