/** Seqs as callers write them: the wire has int64, and a number is easier to type. */

import { invalidArgument } from "../base/errors.ts";

/** A seq in a request. */
export type SeqLike = number | bigint;

/** `seq` for the wire. Throws INVALID_ARGUMENT, naming the field, for what is no whole number. */
export function wireSeq(seq: SeqLike | undefined, field: string): bigint {
  if (typeof seq === "number" && !Number.isSafeInteger(seq)) throw invalidArgument(field, "must be a whole number");
  return BigInt(seq ?? 0);
}
