/** A verdict reached here in the words of the protocol, so that both kinds of verification read the same. Pure. */

import { create } from "@bufbuild/protobuf";
import { ChainFault_Kind, ChainFaultSchema, VerifyResponseSchema, type VerifyResponse } from "../gen/holdfast/v1/journal_pb.ts";
import type { ChainFaultKind, ChainVerdict } from "../journal/index.ts";

const KINDS: Readonly<Record<ChainFaultKind, ChainFault_Kind>> = {
  seq: ChainFault_Kind.SEQ,
  "prev-hash": ChainFault_Kind.PREV_HASH,
  "content-hash": ChainFault_Kind.CONTENT_HASH,
  unreadable: ChainFault_Kind.UNREADABLE,
  head: ChainFault_Kind.HEAD,
};

/** The VerifyResponse of a verdict. */
export function responseOf(verdict: ChainVerdict): VerifyResponse {
  const response = create(VerifyResponseSchema, {
    intact: verdict.kind === "intact",
    records: BigInt(verdict.records),
    headSeq: BigInt(verdict.head.seq),
    headHash: verdict.head.hash,
  });
  if (verdict.kind === "intact") return response;
  const { kind, seq, expected, found } = verdict.fault;
  response.fault = create(ChainFaultSchema, { kind: KINDS[kind], seq: BigInt(seq), expected, found });
  return response;
}
