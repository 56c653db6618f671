/** Several executors as one. */

import { HoldfastError } from "../base/errors.ts";
import type { HostTool, ToolExecutor, ToolRun } from "./tool.ts";
import type { ToolCall, ToolResult } from "./wire.ts";

/** The tools of all of `executors`; where two have one name, the first one's. */
export function joinTools(...executors: readonly ToolExecutor[]): ToolExecutor {
  const ownerOf = (name: string): ToolExecutor | undefined => executors.find((executor) => executor.find(name) !== undefined);
  return {
    list(): readonly HostTool[] {
      const byName = new Map<string, HostTool>();
      for (const tool of executors.flatMap((executor) => executor.list())) {
        if (!byName.has(tool.definition.name)) byName.set(tool.definition.name, tool);
      }
      return [...byName.values()];
    },
    find: (name) => ownerOf(name)?.find(name),
    check: (call: ToolCall) => ownerOf(call.tool)?.check(call),
    async execute(call: ToolCall, run: ToolRun): Promise<ToolResult> {
      const owner = ownerOf(call.tool);
      if (owner === undefined) throw new HoldfastError("failed_precondition", "tool: no tool of this host has this name");
      return owner.execute(call, run);
    },
  };
}
