/** The items of live streams, as the client hands them out. */

import type { LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import type { Delta, ExecUpdate, Session } from "../gen/agentsessions/v1/session_pb.ts";
import type { TailUpdate } from "../gen/holdfast/v1/journal_pb.ts";

/** A committed record. */
export interface RecordItem {
  readonly kind: "record";
  readonly record: LogRecord;
}

/** One item of a live stream. */
export type StreamItem =
  /** The session as it was then: first, and again after a connection was lost and made anew. */
  | { readonly kind: "session"; readonly session: Session }
  | RecordItem
  /** Output as it is made; never journaled. The record that follows has all of it. */
  | { readonly kind: "delta"; readonly delta: Delta };

/** The item in an update; undefined for a kind that this version does not know. */
export function itemOf({ update }: ExecUpdate | TailUpdate): StreamItem | undefined {
  switch (update.case) {
    case "session":
      return { kind: "session", session: update.value };
    case "record":
      return { kind: "record", record: update.value };
    case "delta":
      return { kind: "delta", delta: update.value };
    case undefined:
      return undefined;
  }
}
