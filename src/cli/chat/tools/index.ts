/** The chat's own tools. */

import type { JsonObject } from "@bufbuild/protobuf";
import { ToolCategoryHint } from "../../../client/index.ts";
import { EDIT, WRITE } from "./write.ts";
import { LIST } from "./list.ts";
import type { LocalTool } from "./local-tool.ts";
import { READ } from "./read.ts";
import { RUN } from "./run.ts";
import { SEARCH } from "./search.ts";

export { recovered } from "./recovered.ts";
export { Workspace } from "./workspace.ts";
export type { ChangeMark, Consent, LocalTool, PreparedCall, RefusedCall, ToolOutcome, ToolWorld } from "./local-tool.ts";

/** All of them. */
export const LOCAL_TOOLS: readonly LocalTool[] = [READ, LIST, SEARCH, WRITE, EDIT, RUN];

/** The tool of this name. */
export function localTool(name: string): LocalTool | undefined {
  return LOCAL_TOOLS.find((tool) => tool.name === name);
}

/**
 * A tool as the protocol has it. All are PURE: that category is about the world that a robot moves in, and physical tools are not on offer in the
 * mode `react`. Before a file is written or a command runs the chat itself asks, whatever the server's rules allow.
 */
export function toolSchema({ name, description, parameters, timeoutMs }: LocalTool): {
  readonly name: string;
  readonly description: string;
  readonly parametersSchema: JsonObject;
  readonly timeoutMs: number;
  readonly category: ToolCategoryHint;
} {
  return { name, description, parametersSchema: parameters, timeoutMs, category: ToolCategoryHint.TOOL_CATEGORY_PURE };
}
