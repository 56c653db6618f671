/**
 * When a request is made again, and after what wait. A retry is safe only while nothing of the answer was handed on; the
 * caller of these functions sees to that.
 */

import type { ProviderFault } from "./fault.ts";
import type { ProviderLimits } from "./limits.ts";

/** The statuses of a provider that may answer the same request later: time-out, lock, rate limit. All of 5xx count too. */
const RETRYABLE_4XX: ReadonlySet<number> = new Set([408, 409, 429]);
/** The error types inside a stream that stay as they are. */
const FINAL_REASONS: ReadonlySet<string> = new Set([
  "invalid_request_error",
  "context_length_exceeded",
  "invalid_prompt",
  "authentication_error",
  "permission_error",
  "billing_error",
  "insufficient_quota",
  "not_found_error",
  "request_too_large",
  "invalid_argument",
  "failed_precondition",
  "prompt_blocked",
  "unauthenticated",
  "permission_denied",
  "not_found",
]);

/** Whether the same request may be answered when it is made again. */
export function isRetryable(fault: ProviderFault): boolean {
  switch (fault.kind) {
    case "status":
      return fault.retryForbidden !== true && (fault.status >= 500 || RETRYABLE_4XX.has(fault.status));
    case "stream-error":
      return !FINAL_REASONS.has(fault.reason ?? "");
    case "connection":
    case "cut":
    case "malformed":
      return true;
    case "not-a-stream":
    case "too-large":
    case "timeout":
      return false;
  }
}

/**
 * The wait before the next attempt in milliseconds, or undefined when there is to be none. What the provider asks for is
 * waited for exactly; else the wait doubles from attempt to attempt, and `fraction` (0 to 1) spreads it over its upper half.
 */
export function retryDelayMs(fault: ProviderFault, attempt: number, limits: ProviderLimits, fraction: number): number | undefined {
  if (attempt >= limits.attemptsMax || !isRetryable(fault)) return undefined;
  const asked = fault.kind === "status" ? fault.retryAfterMs : undefined;
  if (asked !== undefined) return asked <= limits.retryAfterMaxMs ? asked : undefined;
  const full = Math.min(limits.backoffBaseMs * 2 ** (attempt - 1), limits.backoffMaxMs);
  return Math.round(full * (0.5 + fraction / 2));
}

/**
 * What a Retry-After header asks for, in milliseconds from `nowMs`: whole or fractional seconds, or an HTTP date. A date that
 * has passed is 0; what is neither is undefined.
 */
export function parseRetryAfter(header: string | null | undefined, nowMs: number): number | undefined {
  if (header === null || header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Math.ceil(Number(text) * 1000);
  // Date.parse takes far more than dates ("-1", "5 apples"), so the text has to look like one.
  if (!/^[A-Za-z]{3,9},? \d{1,2}[ -][A-Za-z]{3}/.test(text) && !/^[A-Za-z]{3} [A-Za-z]{3} /.test(text)) return undefined;
  const dateMs = Date.parse(text);
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs);
}

/** A fraction from 0 (included) to 1 (excluded) out of four random bytes. */
export function fractionOf(bytes: Uint8Array): number {
  const [first = 0, second = 0, third = 0, fourth = 0] = bytes;
  return (first + second * 2 ** 8 + third * 2 ** 16 + fourth * 2 ** 24) / 2 ** 32;
}
