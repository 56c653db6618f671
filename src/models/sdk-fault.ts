/**
 * From what the vendors' clients throw to a fault. Both clients come from one generator, so their errors have one shape; the
 * classes are handed in because the clients are loaded on first use only.
 */

import { ProviderFaultError, reasonWord, requestIdWord, type ProviderFault } from "./fault.ts";
import { parseRetryAfter } from "./retry.ts";

/** The error of a client's that stands for an answer, or for none. */
export interface SdkApiError {
  /** The HTTP status; undefined for a failed connection and for an error inside a stream. */
  readonly status: number | undefined;
  readonly headers: Headers | undefined;
  readonly requestID: string | null | undefined;
  readonly code?: string | null | undefined;
  readonly type?: string | null | undefined;
}

/** The error classes of a client. */
export interface SdkErrorClasses {
  readonly APIError: abstract new (...args: never[]) => Error & SdkApiError;
  readonly APIConnectionError: abstract new (...args: never[]) => Error;
}

/** The fault behind an error that came out of a client; undefined for an error that is not the provider's doing. */
export function faultOfSdkError(error: unknown, sdk: SdkErrorClasses, nowMs: number): ProviderFault | undefined {
  const own = causesOf(error).find((cause) => cause instanceof ProviderFaultError);
  if (own instanceof ProviderFaultError) return own.fault;
  if (error instanceof sdk.APIConnectionError) return { kind: "connection", reason: systemCodeOf(error) };
  if (error instanceof sdk.APIError) return faultOfApiError(error, nowMs);
  // Both clients parse each event as JSON and let the parser's error through.
  if (error instanceof SyntaxError) return { kind: "malformed" };
  // This is what fetch throws when a body breaks off.
  if (error instanceof TypeError && error.message === "terminated") return { kind: "connection", reason: systemCodeOf(error) };
  return undefined;
}

function faultOfApiError(error: SdkApiError, nowMs: number): ProviderFault {
  const reason = reasonWord(error.code) ?? reasonWord(error.type);
  const requestId = requestIdWord(error.requestID);
  if (error.status === undefined) return { kind: "stream-error", reason, requestId };
  return {
    kind: "status",
    status: error.status,
    retryAfterMs: parseRetryAfter(error.headers?.get("retry-after"), nowMs),
    retryForbidden: error.headers?.get("x-should-retry") === "false",
    requestId,
    reason,
  };
}

/** An error and its causes, the outermost first. */
export function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = [];
  // A chain of causes can be a ring; no honest one is this long.
  for (let cause = error; cause instanceof Error && causes.length < 16; cause = cause.cause) causes.push(cause);
  return causes;
}

/** The system's error code, such as ECONNREFUSED, of the innermost cause that has one. */
export function systemCodeOf(error: Error): string | undefined {
  for (const cause of causesOf(error).reverse()) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    if (typeof code === "string" && /^[A-Z][A-Z0-9_]{0,63}$/.test(code)) return code;
  }
  return undefined;
}
