/** What a tool call is refused for, before anything of it is recorded. */

import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { normaliseToolCall } from "../canon/index.ts";
import { ToolResult_Code } from "../gen/agentsessions/v1/common_pb.ts";
import { hostFailure, Mediation, type ToolCall, type ToolCallOptions, type ToolResult } from "../spi/index.ts";
import type { SinkContext } from "./sink.ts";
import { unservedTool } from "./tool-step.ts";

/** Throws INVALID_ARGUMENT for a call that the host does not run, or that cannot be told from others. */
export function refuseUnmediated(call: ToolCall): void {
  if (call.mediation !== Mediation.REQUIRES_APPROVAL && call.mediation !== Mediation.CONTROLLER_MEDIATED) {
    throw invalidArgument("mediation", "must be CONTROLLER_MEDIATED or REQUIRES_APPROVAL; a harness reports the tools that it runs itself");
  }
  if (call.id === "") throw invalidArgument("id", "must be set: a mediated call needs an id that no other call of the turn has");
  if (call.idempotencyKey === "") throw invalidArgument("idempotency_key", "must be set: it names the effect, so that it happens once");
}

/** Throws for a call that may have to wait, of a harness that cannot. */
export function refuseUnparkable({ mediation }: ToolCall, { mayPark }: Pick<SinkContext, "mayPark">): void {
  if (mediation !== Mediation.REQUIRES_APPROVAL || mayPark) return;
  throw new HoldfastError("failed_precondition", "tool: only a harness that keeps no state in memory may wait for an approval");
}

/**
 * What is wrong with a call's arguments, for a harness that wants it as the call's result. Throws for a tool that is not here, and what is
 * wrong for any other harness. A replay may not know the tools, and then knows nothing.
 */
export function refuseUnfit(
  call: ToolCall,
  { unfit }: Pick<ToolCallOptions, "unfit">,
  { executor, isReplay }: Pick<SinkContext, "executor" | "isReplay">,
): string | undefined {
  if (executor === undefined) {
    if (isReplay) return undefined;
    throw new HoldfastError("failed_precondition", "tool: this host has no tool executor, so it runs no mediated tools");
  }
  if (executor.find(call.tool) === undefined) throw unservedTool(call.tool);
  // Validators may fill defaults in. What is recorded is what was asked, or a recovery would ask for something else.
  const fault = executor.check(normaliseToolCall(call));
  if (fault !== undefined && unfit !== "answer") throw invalidArgument("args", fault);
  return fault;
}

/** The result of a call whose arguments do not fit its tool. */
export function unfitResult(id: string, fault: string): ToolResult {
  return hostFailure(id, { code: ToolResult_Code.CODE_UNSPECIFIED, error: `args: ${fault}; the tool was not run` });
}
