/**
 * Receipts: what the host knows of the effects of its tools, kept beside the journal in the same database and changed in the transaction
 * of the append that they belong to.
 *
 * Invariants:
 * - One receipt for each idempotency key of a session. A key names one effect: who finds a receipt under it does not act again, but
 *   for a tool that is idempotent.
 * - `started` is durable before the effect begins, `finished` together with the TOOL_RESULT. So a call whose receipt says `intended`
 *   has certainly not begun, and one that says `started` may have taken effect.
 * - Receipts are the session's own: a fork has none of its parent's, an import none of what was exported.
 */

import type { Seq } from "../base/ids.ts";

/**
 * How far an effect has come.
 * - `intended`: recorded and not begun; it waits for a decision or to be driven.
 * - `started`: it may have taken effect.
 * - `finished`: its result is the TOOL_RESULT at `resultSeq`.
 * - `unknown`: it was recorded that nobody knows, in the TOOL_RESULT at `resultSeq`.
 * - `done`, `failed`: it was unknown, and a person said so.
 */
export type ReceiptState = "intended" | "started" | "finished" | "unknown" | "done" | "failed";

/** One receipt. */
export interface Receipt {
  /** The idempotency key. */
  readonly key: string;
  /** The id of the call that was the last to act under the key. */
  readonly callId: string;
  /** The seq of its TOOL_CALL. */
  readonly callSeq: Seq;
  readonly state: ReceiptState;
  /** The seq of the TOOL_RESULT that the state speaks of; absent before there is one. */
  readonly resultSeq?: Seq | undefined;
  /** Who settled an unknown outcome; absent where nobody had to. */
  readonly settledBy?: string | undefined;
}

/** Which receipts are looked up. */
export interface ReceiptQuery {
  /** Only the one under this key. Absent: all whose outcome is not known, `started` and `unknown`, by the seqs of their calls. */
  readonly key?: string | undefined;
}

/** Whether a receipt's outcome is not known. */
export function isUnsettled({ state }: Receipt): boolean {
  return state === "started" || state === "unknown";
}
