/** Tool calls as a session's records have them. */

import type { Seq } from "../../base/index.ts";
import { Mediation, type ToolCall, type ToolResult } from "../../spi/index.ts";
import type { SessionEvidence } from "./session-evidence.ts";

/** One mediated call: where it was recorded, decided and answered. */
export interface SeenToolCall {
  readonly call: ToolCall;
  readonly callSeq: Seq;
  readonly executionId: string;
  readonly gated: boolean;
  decision: { readonly seq: Seq; readonly approved: boolean } | undefined;
  result: { readonly seq: Seq; readonly value: ToolResult } | undefined;
}

/** The mediated calls of a session, its parent's among them, in order. */
export function toolCallsOf(evidence: SessionEvidence): readonly SeenToolCall[] {
  const calls: SeenToolCall[] = [];
  const find = (executionId: string, id: string): SeenToolCall | undefined =>
    calls.findLast((seen) => seen.executionId === executionId && seen.call.id === id);
  for (const { seq, event } of evidence.records) {
    const { body, executionId } = event;
    if (body.case === "tool") {
      const gated = body.value.mediation === Mediation.REQUIRES_APPROVAL;
      calls.push({ call: body.value, callSeq: seq, executionId, gated, decision: undefined, result: undefined });
    } else if (body.case === "approvalResult") {
      const seen = find(executionId, body.value.toolCallId);
      if (seen !== undefined) seen.decision = { seq, approved: body.value.approved };
    } else if (body.case === "result") {
      const seen = find(executionId, body.value.id);
      if (seen !== undefined) seen.result = { seq, value: body.value };
    }
  }
  return calls;
}

/** The TOOL_CALLs of a session with this id and key, in order. */
export function toolCallSeqs(evidence: SessionEvidence, id: string, key: string): readonly Seq[] {
  return toolCallsOf(evidence).flatMap(({ call, callSeq }) => (call.id === id && call.idempotencyKey === key ? [callSeq] : []));
}
