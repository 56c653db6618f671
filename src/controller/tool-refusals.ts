/** What a tool call is refused for, before anything of it is recorded. */

import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { Mediation, type ToolCall } from "../spi/index.ts";
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

/** Throws for a tool that is not here and for arguments that do not fit it. A replay may not know the tools, and then knows nothing. */
export function refuseUnfit(call: ToolCall, { executor, isReplay }: Pick<SinkContext, "executor" | "isReplay">): void {
  if (executor === undefined) {
    if (isReplay) return;
    throw new HoldfastError("failed_precondition", "tool: this host has no tool executor, so it runs no mediated tools");
  }
  if (executor.find(call.tool) === undefined) throw unservedTool();
  const fault = executor.check(call);
  if (fault !== undefined) throw invalidArgument("args", fault);
}
