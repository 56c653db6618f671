/** Running a tool, and what of its result can be recorded. Whatever goes wrong is a result like any other. */

import { HoldfastError } from "../base/errors.ts";
import { normaliseToolCall, normaliseToolResult, wellFormedToolResult } from "../canon/index.ts";
import { ToolResult_Code } from "../gen/agentsessions/v1/common_pb.ts";
import type { NewEvent, ReceiptState } from "../journal/index.ts";
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
import { recordBytesOf } from "./record-size.ts";
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

/** A result, and the record that it becomes. */
export interface RecordedResult {
  readonly result: ToolResult;
  readonly event: NewEvent;
}

/** What a result is measured by. */
export interface ResultTerms {
  readonly call: ToolCall;
  readonly approval: ApprovalSeqs | undefined;
  /** The result, which is normalised, with its record. */
  readonly recorded: (result: ToolResult) => RecordedResult;
  /** The bytes that a result may take as a record. */
  readonly bytesMax: number;
}

/** The result as it is recorded: the call's id and the approval are the host's to say, and it must fit into a record. */
export function recordableResult(result: ToolResult, { call, approval, recorded, bytesMax }: ResultTerms): RecordedResult {
  const own = {
    id: call.id,
    code: result.isError && result.code === ToolResult_Code.EXECUTOR_ERROR ? result.code : ToolResult_Code.CODE_UNSPECIFIED,
    approvalRequestSeq: approval?.requestSeq ?? 0n,
    approvalDecisionSeq: approval?.decisionSeq ?? 0n,
  };
  const failed = (error: string): RecordedResult => recorded(normaliseToolResult(executorFailure(call.id, error, approval)));
  let made: RecordedResult;
  try {
    made = recorded(Object.assign(wellFormedToolResult(result), own));
  } catch {
    return failed("the tool's result holds what no record can hold");
  }
  const bytes = recordBytesOf(made.event);
  return bytes <= bytesMax ? made : failed(`the tool's result takes ${bytes} bytes; at most ${bytesMax} are recorded`);
}

/** What the receipt of a call says that has come to `result`. */
export function stateAfter(result: ToolResult): ReceiptState {
  return isUnknownOutcome(result) ? "unknown" : "finished";
}

function executorFailure(id: string, error: string, approval?: ApprovalSeqs): ToolResult {
  return hostFailure(id, { code: ToolResult_Code.EXECUTOR_ERROR, error }, approval);
}
