/** Replay's and Tail's requests as ranges of seqs. Pure. */

import type { ReplayRequest } from "../gen/agentsessions/v1/session_pb.ts";
import { TailRequest_Until, type TailRequest } from "../gen/holdfast/v1/journal_pb.ts";
import { invalidArgument } from "../base/errors.ts";
import { seqOf, sessionUidOf, type Seq, type SessionUid } from "../base/ids.ts";

const SEQ_FIRST = 1 as Seq;

/** Which records a Replay asks for. */
export interface ParsedReplay {
  readonly session: SessionUid;
  readonly fromSeq: Seq;
  /** Undefined: the head when the call arrives. */
  readonly toSeq: Seq | undefined;
}

/** A range that is empty, or past the head, is a valid question with an empty answer. */
export function parseReplay(request: ReplayRequest): ParsedReplay {
  const to = seqOf(request.toSeq, "to_seq");
  return {
    session: sessionUidOf(request.session, "session"),
    fromSeq: firstSeqOf(request.fromSeq),
    toSeq: to === 0 ? undefined : to,
  };
}

/** What a Tail asks for. */
export interface ParsedTail {
  readonly session: SessionUid;
  readonly fromSeq: Seq;
  readonly until: "cancelled" | "head" | "idle";
  readonly deltas: boolean;
}

export function parseTail(request: TailRequest): ParsedTail {
  return {
    session: sessionUidOf(request.session, "session"),
    fromSeq: firstSeqOf(request.fromSeq),
    until: untilOf(request.until),
    deltas: !request.omitDeltas,
  };
}

/** 0 and 1 both mean the first record. */
function firstSeqOf(seq: bigint): Seq {
  const from = seqOf(seq, "from_seq");
  return from === 0 ? SEQ_FIRST : from;
}

function untilOf(until: TailRequest_Until): ParsedTail["until"] {
  switch (until) {
    case TailRequest_Until.UNSPECIFIED:
      return "cancelled";
    case TailRequest_Until.HEAD:
      return "head";
    case TailRequest_Until.IDLE:
      return "idle";
    default:
      throw invalidArgument("until", "must be UNTIL_UNSPECIFIED, UNTIL_HEAD or UNTIL_IDLE");
  }
}
