/**
 * Reclaiming: what of a deleted session may go. Pure.
 *
 * Invariants:
 * - Records go from the end, and the state says in the same transaction how far they reach. At any time what is left is a prefix,
 *   readable from its first record to its last.
 * - A record goes only if no row of a child needs it. Once a session is deleted nobody can be forked from it, so what its children
 *   need of it only falls; an imported child may hang on to what is still there, and no further.
 */

import { SEQ_NONE, type Seq } from "../base/ids.ts";
import { RECLAIM_BYTES_SOFT_MAX, RECLAIM_RECORDS_MAX } from "./limits.ts";
import { isLive, readableSeq, type SessionState } from "./session-state.ts";
import type { ReclaimOutcome } from "./store.ts";

/** What a session takes of its parent's records: those up to its fork, or fewer if it does not reach so far any more. */
export function sharedSeq(child: SessionState): Seq {
  const forkSeq = child.parent?.forkSeq ?? SEQ_NONE;
  return Math.min(forkSeq, readableSeq(child)) as Seq;
}

/** The size of a record that may go. */
export interface RecordSize {
  readonly seq: Seq;
  readonly bytes: number;
}

/** The seq after which a slice begins, from the sizes of the records above `floorSeq`, the newest first. */
export function sliceFloorOf(newestFirst: Iterable<RecordSize>, floorSeq: Seq): Seq {
  let records = 0;
  let total = 0;
  for (const { seq, bytes } of newestFirst) {
    records += 1;
    total += bytes;
    if (records >= RECLAIM_RECORDS_MAX || total >= RECLAIM_BYTES_SOFT_MAX) return (seq - 1) as Seq;
  }
  return floorSeq;
}

/** One step of reclaiming. */
export type ReclaimStep =
  | { readonly kind: "refused"; readonly outcome: ReclaimOutcome }
  /** The row goes, and every record that is left. */
  | { readonly kind: "remove" }
  /** Records above `state.keptSeq` go. */
  | { readonly kind: "cut"; readonly state: SessionState; readonly outcome: ReclaimOutcome };

/** What a step looks up. */
export interface ReclaimFacts {
  /** The last record that a child shares. */
  readonly neededSeq: Seq;
  /** The seq after which the last slice of the session's own records above `floorSeq` begins. */
  sliceFloor(floorSeq: Seq, toSeq: Seq): Seq;
}

/** The next step for a session. */
export function reclaimStep(state: SessionState, facts: ReclaimFacts): ReclaimStep {
  if (isLive(state)) return { kind: "refused", outcome: { kind: "not-deleted" } };
  const lastSeq = readableSeq(state);
  const neededSeq = Math.min(facts.neededSeq, lastSeq) as Seq;
  const inheritedSeq = state.parent?.forkSeq ?? SEQ_NONE;
  const floorSeq = Math.max(neededSeq, inheritedSeq) as Seq;
  const reachedSeq = floorSeq < lastSeq ? facts.sliceFloor(floorSeq, lastSeq) : floorSeq;
  if (reachedSeq > floorSeq) return cut(state, { kind: "more", keptSeq: reachedSeq });
  if (neededSeq === SEQ_NONE) return { kind: "remove" };
  const outcome: ReclaimOutcome = { kind: "kept", keptSeq: neededSeq };
  return state.keptSeq === neededSeq ? { kind: "refused", outcome } : cut(state, outcome);
}

/** The time of the last change stays the deletion's: retention counts from there. */
function cut(state: SessionState, outcome: Extract<ReclaimOutcome, { readonly keptSeq: Seq }>): ReclaimStep {
  return { kind: "cut", outcome, state: { ...state, version: state.version + 1, keptSeq: outcome.keptSeq } };
}
