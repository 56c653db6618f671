/** The greenhouse, which is only played: what it measures, and what its windows do. The tools of this client. */

import { ToolCategoryHint, type AgentToolResult } from "holdfast/client";

/** What the agent may call, as it is told of it. Looking is free; a tool that moves something is physical. */
export const TOOLS = [
  {
    name: "read_sensors",
    description: "The temperature in degrees Celsius, and how the windows are.",
    category: ToolCategoryHint.TOOL_CATEGORY_PURE,
  },
  {
    name: "set_windows",
    description: "Opens the windows by so many percent; 0 closes them.",
    parametersSchema: {
      type: "object",
      properties: { percent: { type: "integer", minimum: 0, maximum: 100 } },
      required: ["percent"],
      additionalProperties: false,
    },
    category: ToolCategoryHint.TOOL_CATEGORY_PHYSICAL,
    timeoutMs: 10_000,
  },
];

let percent = 0;

/** Runs one call. Its arguments fit the tool's schema: the server has checked them. */
export function runTool(name: string, args: Readonly<Record<string, unknown>>): AgentToolResult {
  if (name === "set_windows") percent = Number(args["percent"]);
  else if (name !== "read_sensors") return { success: false, result: `there is no tool ${name}` };
  return { success: true, result: percent === 0 ? "31 degrees, windows closed" : `24 degrees, windows open by ${percent} percent` };
}
