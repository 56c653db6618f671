/** What an export is made of, whichever form it has. */

import { HoldfastError } from "../base/errors.ts";
import type { Seq, SessionUid } from "../base/ids.ts";
import type { SignedHead } from "../gen/holdfast/v1/export_pb.ts";
import type { SessionSeed } from "../journal/index.ts";

/** What is not in a session's records, and how far these go. */
export interface SessionFacts {
  readonly seed: SessionSeed;
  readonly parent: { readonly uid: SessionUid; readonly forkSeq: Seq } | undefined;
  /** The last record of the session in the export. */
  readonly lastSeq: Seq;
  /** The session is there for the prefix that others share, and has no head. */
  readonly prefixOnly: boolean;
}

/** One piece of an export. Sessions come before all records, parents before their children. */
export type ArchiveItem =
  | { readonly kind: "header"; readonly version: number }
  | { readonly kind: "session"; readonly facts: SessionFacts }
  /** A record that the session wrote itself: the bytes of its LogRecord as they were committed. */
  | { readonly kind: "record"; readonly session: SessionUid; readonly bytes: Uint8Array }
  | { readonly kind: "aside"; readonly session: SessionUid; readonly seq: Seq; readonly bytes: Uint8Array }
  | { readonly kind: "head"; readonly head: SignedHead }
  | { readonly kind: "end"; readonly sessions: number; readonly records: number };

/** How many records a session has of its own in the export. */
export function ownRecordsOf({ lastSeq, parent }: SessionFacts): number {
  return Math.max(0, lastSeq - (parent?.forkSeq ?? 0));
}

/** The last record that a session has from its ancestors in the export; 0 for none. */
export function inheritedSeqOf({ lastSeq, parent }: SessionFacts): Seq {
  return Math.min(parent?.forkSeq ?? 0, lastSeq) as Seq;
}

/** The two forms of an export. */
export type ArchiveForm = "binary" | "lines";

/** An INVALID_ARGUMENT about a file that is no export, or not a whole one. `where` is a place in it, such as `line 7`. */
export function malformed(where: string, what: string, cause?: unknown): HoldfastError {
  const place = where === "" ? "file" : `file: ${where}`;
  return new HoldfastError("invalid_argument", `${place} ${what}`, { field: "file", cause });
}

/** Runs a step of reading at a place of a file; what goes wrong in it is the file's fault. */
export function readingAt<T>(where: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (isMalformed(error)) throw error;
    if (error instanceof HoldfastError && error.code === "invalid_argument") throw malformed(where, `is wrong: ${error.message}`, error);
    throw malformed(where, "cannot be read", error);
  }
}

/** Whether `error` says that a file is no export. */
export function isMalformed(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && error.code === "invalid_argument" && error.field === "file";
}
