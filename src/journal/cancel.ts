/** Cancelling a call of a store. */

import { HoldfastError } from "../base/errors.ts";

/** Throws CANCELLED if `signal` has fired; a HoldfastError that it fired with is thrown as it is. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal === undefined || !signal.aborted) return;
  const { reason } = signal;
  throw reason instanceof HoldfastError
    ? reason
    : new HoldfastError("cancelled", "the call was cancelled before it began", { cause: reason });
}
