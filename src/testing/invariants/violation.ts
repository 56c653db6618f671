/** A broken promise, as the checkers report it. */

import type { Seq, SessionUid } from "../../base/index.ts";

/**
 * Which promise is broken: one of the contract's invariants; `turn`, what a turn's records look like; `answers`, what a client may
 * be told; `progress`, that what was interrupted can go on.
 */
export type Promised = "I0" | "I1" | "I2" | "I3" | "I4" | "I5" | "I6" | "I7" | "I8" | "turn" | "answers" | "progress";

/** One broken promise. */
export interface Violation {
  readonly promised: Promised;
  /** Absent where no session is concerned. */
  readonly session?: SessionUid | undefined;
  /** The record where it shows. */
  readonly seq?: number | undefined;
  readonly what: string;
}

/** Where a violation shows. */
export interface Place {
  readonly session?: SessionUid | undefined;
  readonly seq?: Seq | number | undefined;
}

/** A violation of `promised` at `place`. */
export function violation(promised: Promised, place: Place, what: string): Violation {
  return { promised, session: place.session, seq: place.seq, what };
}

/** One line for a person: `I6 0199…@7: the fence went back`. */
export function violationText({ promised, session, seq, what }: Violation): string {
  const place = session === undefined ? "" : ` ${session}${seq === undefined ? "" : `@${seq}`}`;
  return `${promised}${place}: ${what}`;
}
