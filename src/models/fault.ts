/**
 * What can go wrong with a provider, and what the host makes of it.
 *
 * Invariants:
 * - A fault holds numbers and words from closed alphabets only. The provider's text, its address and the key never get in, so
 *   they cannot get out: neither in a message nor in details, a cause or a stack.
 * - `holdfastErrorOf` is the only way from a fault to an error.
 */

import { HoldfastError, type ErrorCode } from "../base/errors.ts";

/** Which time limit ran out; see `ProviderLimits`. */
export type TimeLimit = "first_byte" | "idle" | "call";

/** One way in which a request to a provider failed. */
export type ProviderFault =
  /** An HTTP status other than success. `retryForbidden`: the provider said that a retry is of no use. */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly retryAfterMs?: number | undefined;
      readonly retryForbidden?: boolean | undefined;
      readonly requestId?: string | undefined;
      readonly reason?: string | undefined;
    }
  /** The provider said inside its stream that it failed; `reason` is its error type. */
  | { readonly kind: "stream-error"; readonly reason?: string | undefined; readonly requestId?: string | undefined }
  /** No connection, or one that broke; `reason` is the system's error code. */
  | { readonly kind: "connection"; readonly reason?: string | undefined }
  /** The answer ended before the provider said that it was complete. */
  | { readonly kind: "cut" }
  /** What came is not what the protocol says. */
  | { readonly kind: "malformed" }
  /** A success that is no event stream: the address is not a provider's. */
  | { readonly kind: "not-a-stream" }
  /** The answer is larger than the host takes. */
  | { readonly kind: "too-large" }
  | { readonly kind: "timeout"; readonly limit: TimeLimit };

/** Carries a fault through code that throws. It never leaves `models/`. */
export class ProviderFaultError extends Error {
  override readonly name = "ProviderFaultError";
  readonly fault: ProviderFault;

  constructor(fault: ProviderFault) {
    super(`the provider failed: ${fault.kind}`);
    this.fault = fault;
  }
}

/** Throws the fault of an answer that breaks the protocol. */
export function malformed(): never {
  throw new ProviderFaultError({ kind: "malformed" });
}

/** `text` when it is a plain lower-case word such as `context_length_exceeded`; anything else could hold the provider's text. */
export function reasonWord(text: unknown): string | undefined {
  return typeof text === "string" && /^[a-z][a-z_]{0,63}$/.test(text) ? text : undefined;
}

/** `text` when it looks like a request id: what support asks for, and no place for prose. */
export function requestIdWord(text: string | null | undefined): string | undefined {
  return typeof text === "string" && /^[A-Za-z0-9_.:-]{1,128}$/.test(text) ? text : undefined;
}

interface Verdict {
  readonly code: ErrorCode;
  readonly message: string;
}

const UNAVAILABLE: Verdict = { code: "unavailable", message: "model: the provider is not able to answer now; try again later" };
const REFUSED: Verdict = {
  code: "invalid_argument",
  message: "model request: the provider refused it as invalid; check its messages, params and tools",
};
const BLOCKED: Verdict = {
  code: "invalid_argument",
  message: "model request: the provider's safety rules refuse it; change its messages",
};
const CREDENTIALS: Verdict = {
  code: "failed_precondition",
  message: "model: the provider refused the host's credentials; check the key in the host's environment",
};
const UNKNOWN_MODEL: Verdict = {
  code: "invalid_argument",
  message: "model: the provider does not serve it; check the model's name, and the provider's base URL in the host's environment",
};
const TOO_LARGE: Verdict = {
  code: "resource_exhausted",
  message: "model request: it is larger than the provider accepts; send less",
};
const OVER_LIMIT: Verdict = {
  code: "resource_exhausted",
  message: "model: the host is over the provider's rate limit or quota; try again later",
};
const NO_CREDIT: Verdict = {
  code: "resource_exhausted",
  message: "model: the provider's account of the host is out of credit",
};
const WRONG_ADDRESS: Verdict = {
  code: "failed_precondition",
  message: "model: no provider's API is at the host's base URL; check it in the host's environment",
};

function verdictOf(fault: ProviderFault): Verdict {
  switch (fault.kind) {
    case "status":
      // Google answers a wrong key with 400.
      return fault.reason === "api_key_invalid" ? CREDENTIALS : statusVerdict(fault.status);
    case "stream-error":
      return STREAM_VERDICTS[fault.reason ?? ""] ?? UNAVAILABLE;
    case "connection":
      return { code: "unavailable", message: "model: the connection to the provider failed; try again later" };
    case "cut":
      return { code: "unavailable", message: "model: the provider's answer broke off before its end; try again" };
    case "malformed":
      return { code: "unavailable", message: "model: the provider's answer does not follow its protocol; try again" };
    case "not-a-stream":
      return WRONG_ADDRESS;
    case "too-large":
      return { code: "resource_exhausted", message: "model: the provider's answer is larger than the host takes" };
    case "timeout":
      return { code: "unavailable", message: "model: the provider did not answer in the time that the host gives it" };
  }
}

function statusVerdict(status: number): Verdict {
  if (status === 401 || status === 403) return CREDENTIALS;
  if (status === 402) return NO_CREDIT;
  if (status === 404) return UNKNOWN_MODEL;
  if (status === 413) return TOO_LARGE;
  if (status === 429) return OVER_LIMIT;
  if (status === 408 || status === 409 || status >= 500) return UNAVAILABLE;
  if (status >= 300 && status < 400) return WRONG_ADDRESS;
  return REFUSED;
}

/** The error types that providers name inside a stream. All others are UNAVAILABLE. */
const STREAM_VERDICTS: Readonly<Record<string, Verdict>> = {
  invalid_request_error: REFUSED,
  context_length_exceeded: REFUSED,
  invalid_prompt: REFUSED,
  authentication_error: CREDENTIALS,
  permission_error: CREDENTIALS,
  billing_error: NO_CREDIT,
  insufficient_quota: NO_CREDIT,
  not_found_error: UNKNOWN_MODEL,
  request_too_large: TOO_LARGE,
  rate_limit_error: OVER_LIMIT,
  rate_limit_exceeded: OVER_LIMIT,
  // Google's status words.
  invalid_argument: REFUSED,
  failed_precondition: REFUSED,
  prompt_blocked: BLOCKED,
  unauthenticated: CREDENTIALS,
  permission_denied: CREDENTIALS,
  not_found: UNKNOWN_MODEL,
  resource_exhausted: OVER_LIMIT,
};

/** Where and how often a request was tried. */
export interface FaultContext {
  readonly provider: string;
  readonly attempts: number;
}

/** The error that a caller gets for a fault. It has no cause: what was caught underneath may hold the provider's text. */
export function holdfastErrorOf(fault: ProviderFault, context: FaultContext): HoldfastError {
  const { code, message } = verdictOf(fault);
  const details: Record<string, string | number> = { ...context, fault: fault.kind };
  if (fault.kind === "status") details["status"] = fault.status;
  if (fault.kind === "timeout") details["limit"] = fault.limit;
  if ("reason" in fault && fault.reason !== undefined) details["reason"] = fault.reason;
  if ("requestId" in fault && fault.requestId !== undefined) details["requestId"] = fault.requestId;
  const field = message.startsWith("model:") && code === "invalid_argument" ? "model" : undefined;
  return new HoldfastError(code, message, { field, details });
}

/** The error of a call whose signal fired: the signal's reason when that is one of ours, else CANCELLED. */
export function abortErrorOf(signal: AbortSignal): HoldfastError {
  const reason: unknown = signal.reason;
  return reason instanceof HoldfastError ? reason : new HoldfastError("cancelled", "model: the call was cancelled");
}
