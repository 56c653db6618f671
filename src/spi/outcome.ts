/** Results that the host itself gives a tool call, because no tool did. */

import { create } from "@bufbuild/protobuf";
import { PartSchema, ToolResult_Code, ToolResultSchema, type ToolResult } from "../gen/agentsessions/v1/common_pb.ts";

/** How the error of an unknown outcome begins, in every TOOL_RESULT that records one. */
const UNKNOWN_PREFIX = "unknown outcome: ";

/** The seqs of the request and the decision that led to a result; absent for a call without approval. */
export interface ApprovalSeqs {
  readonly requestSeq: bigint;
  readonly decisionSeq: bigint;
}

/** A failed result in the host's own words, which the model sees as well. */
export function hostFailure(
  id: string,
  failure: { readonly code: ToolResult_Code; readonly error: string },
  approval?: ApprovalSeqs,
): ToolResult {
  const { code, error } = failure;
  return create(ToolResultSchema, {
    id,
    isError: true,
    error,
    code,
    content: [create(PartSchema, { part: { case: "text", value: { text: error } } })],
    approvalRequestSeq: approval?.requestSeq ?? 0n,
    approvalDecisionSeq: approval?.decisionSeq ?? 0n,
  });
}

/** The result of a call of which nobody knows whether it took effect. `why` says how that came about. */
export function unknownOutcome(id: string, why: string, approval?: ApprovalSeqs): ToolResult {
  return hostFailure(id, { code: ToolResult_Code.EXECUTOR_ERROR, error: `${UNKNOWN_PREFIX}${why}` }, approval);
}

/** Whether a recorded result says that the outcome of its call is unknown. */
export function isUnknownOutcome(result: ToolResult): boolean {
  return result.isError && result.code === ToolResult_Code.EXECUTOR_ERROR && result.error.startsWith(UNKNOWN_PREFIX);
}
