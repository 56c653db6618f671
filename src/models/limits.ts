/** How long a provider may take, how often it is asked, and how much it may send: the options of a provider and their defaults. */

import { invalidArgument } from "../base/errors.ts";

/** The limits of one model call. Times are in milliseconds. */
export interface ProviderLimits {
  /**
   * From sending a request to the first byte of the answer's body, connecting included; for each attempt. Default 240 000.
   * Running out ends the call without a retry: the provider may be at work on it still, and would be paid twice.
   */
  readonly firstByteTimeoutMs: number;
  /** Between two pieces of the answer, keep-alives of the provider included. Default 120 000. */
  readonly idleTimeoutMs: number;
  /** The whole call with all attempts and waits. Default 1 200 000. */
  readonly callTimeoutMs: number;
  /** Requests at most, the first included. Default 4. */
  readonly attemptsMax: number;
  /** The wait before the second attempt; it doubles with each further one. Default 500. */
  readonly backoffBaseMs: number;
  /** The longest wait that the host chooses by itself. Default 8 000. */
  readonly backoffMaxMs: number;
  /** The longest wait that a provider may ask for with Retry-After; a longer one ends the call at once. Default 60 000. */
  readonly retryAfterMaxMs: number;
  /** Bytes of one answer at most. Default 64 MiB. */
  readonly answerBytesMax: number;
}

/** The default limits. */
export const PROVIDER_LIMITS: ProviderLimits = {
  firstByteTimeoutMs: 240_000,
  idleTimeoutMs: 120_000,
  callTimeoutMs: 1_200_000,
  attemptsMax: 4,
  backoffBaseMs: 500,
  backoffMaxMs: 8_000,
  retryAfterMaxMs: 60_000,
  answerBytesMax: 64 * 1024 * 1024,
};

/** Node's fetch gives up by itself after 300 s without a byte, so a longer limit would promise what cannot be kept. */
const SILENCE_MAX_MS = 290_000;
/** A timer of a JavaScript platform holds 31 bits. */
const TIMER_MAX_MS = 2_147_483_647;

const RANGES: Readonly<Record<keyof ProviderLimits, readonly [number, number]>> = {
  firstByteTimeoutMs: [1, SILENCE_MAX_MS],
  idleTimeoutMs: [1, SILENCE_MAX_MS],
  callTimeoutMs: [1, TIMER_MAX_MS],
  attemptsMax: [1, 100],
  backoffBaseMs: [0, TIMER_MAX_MS],
  backoffMaxMs: [0, TIMER_MAX_MS],
  retryAfterMaxMs: [0, TIMER_MAX_MS],
  answerBytesMax: [1, Number.MAX_SAFE_INTEGER],
};

/** The limits with defaults filled in. Throws INVALID_ARGUMENT naming the limit that is out of its range. */
export function resolveLimits(given: Partial<ProviderLimits> = {}): ProviderLimits {
  const limits = { ...PROVIDER_LIMITS };
  for (const name of Object.keys(RANGES) as (keyof ProviderLimits)[]) {
    const value = given[name];
    if (value === undefined) continue;
    const [least, most] = RANGES[name];
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw invalidArgument(`limits.${name}`, `must be a whole number from ${least} to ${most}`);
    }
    limits[name] = value;
  }
  return limits;
}
