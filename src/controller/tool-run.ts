/** Running a tool, and what of its result can be recorded. Whatever goes wrong is a result like any other. */

import { HoldfastError } from "../base/errors.ts";
import { normaliseToolCall, wellFormedToolResult } from "../canon/index.ts";
import { ToolResult_Code } from "../gen/agentsessions/v1/common_pb.ts";
import type { ReceiptState } from "../journal/index.ts";
import {
  hostFailure,
  InterruptedCallError,
  isUnknownOutcome,
  type ApprovalSeqs,
  type ToolCall,
  type ToolExecutor,
  type ToolResult,
  type ToolRun,
} from "../spi/index.ts";
import { unservedTool } from "./tool-step.ts";

/** What the executor makes of a call; a failure of its own is EXECUTOR_ERROR. Rejects with InterruptedCallError and nothing else. */
export async function executed(executor: ToolExecutor | undefined, call: ToolCall, run: ToolRun): Promise<ToolResult> {
  try {
    if (executor === undefined) throw unservedTool(call.tool);
    return await executor.execute(normaliseToolCall(call), run);
  } catch (error) {
    if (error instanceof InterruptedCallError) throw error;
    return executorFailure(call.id, error instanceof HoldfastError ? error.message : "the host's executor failed");
  }
}

/** What a result is measured by. */
export interface ResultTerms {
  readonly call: ToolCall;
  readonly approval: ApprovalSeqs | undefined;
  /** The bytes that a result takes as a record. */
  readonly bytesOf: (result: ToolResult) => number;
  readonly bytesMax: number;
}

/** The result as it is recorded: the call's id and the approval are the host's to say, and it must fit into a record. */
export function recordableResult(result: ToolResult, { call, approval, bytesOf, bytesMax }: ResultTerms): ToolResult {
  const own = {
    id: call.id,
    code: result.isError && result.code === ToolResult_Code.EXECUTOR_ERROR ? result.code : ToolResult_Code.CODE_UNSPECIFIED,
    approvalRequestSeq: approval?.requestSeq ?? 0n,
    approvalDecisionSeq: approval?.decisionSeq ?? 0n,
  };
  try {
    const normal = Object.assign(wellFormedToolResult(result), own);
    const bytes = bytesOf(normal);
    if (bytes <= bytesMax) return normal;
    return executorFailure(call.id, `the tool's result takes ${bytes} bytes; at most ${bytesMax} are recorded`, approval);
  } catch {
    return executorFailure(call.id, "the tool's result holds what no record can hold", approval);
  }
}

/** What the receipt of a call says that has come to `result`. */
export function stateAfter(result: ToolResult): ReceiptState {
  return isUnknownOutcome(result) ? "unknown" : "finished";
}

function executorFailure(id: string, error: string, approval?: ApprovalSeqs): ToolResult {
  return hostFailure(id, { code: ToolResult_Code.EXECUTOR_ERROR, error }, approval);
}
