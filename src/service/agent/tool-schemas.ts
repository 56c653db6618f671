/** The tools that a client runs, as it registers them: checked, named once each, and bounded. Pure but for the compiler that it is given. */

import { create } from "@bufbuild/protobuf";
import { utf8Length } from "../../base/bytes.ts";
import { invalidArgument } from "../../base/errors.ts";
import { ToolDefinitionSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ToolCategoryHint, ToolSchemaSchema, type ToolSchema } from "../../gen/roz/v1/agent_pb.ts";
import type { ToolCategory, ToolDefinition } from "../../spi/index.ts";
import { checkContent } from "../content.ts";
import { SERVICE_LIMITS } from "../limits.ts";
import { overLimit } from "../text.ts";
import type { AgentLimits } from "./limits.ts";
import type { SchemaChecks } from "./schema-checks.ts";

/** A tool of a client's. */
export interface ClientToolSpec {
  readonly definition: ToolDefinition;
  readonly category: ToolCategory;
  readonly timeoutMs: number;
}

/** A tool's name as every provider takes it. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Throws INVALID_ARGUMENT or RESOURCE_EXHAUSTED that names the tool, for what is no list of tools. */
export function checkTools(
  tools: readonly ToolSchema[],
  field: string,
  terms: { readonly limits: AgentLimits; readonly checks: SchemaChecks },
): void {
  const { limits, checks } = terms;
  if (tools.length > limits.toolsMax) throw overLimit(field, `has ${tools.length} tools; at most ${limits.toolsMax} are allowed`);
  const names = new Set<string>();
  let bytes = 0;
  for (const [index, tool] of tools.entries()) {
    const at = `${field}[${index}]`;
    bytes += checkTool(tool, at, limits);
    if (names.has(tool.name)) throw invalidArgument(`${at}.name`, "must be unique: another tool of the list has this name");
    names.add(tool.name);
    if (tool.parametersSchema !== undefined) checks.of(tool.parametersSchema, `${at}.parameters_schema`);
  }
  if (bytes > limits.toolsBytesMax) throw overLimit(field, `takes ${bytes} bytes; at most ${limits.toolsBytesMax} are allowed`);
}

/** The bytes that the tool takes where it is offered. */
function checkTool(tool: ToolSchema, at: string, limits: AgentLimits): number {
  checkContent(ToolSchemaSchema, tool, at, SERVICE_LIMITS.nestingMax);
  if (!NAME.test(tool.name)) throw invalidArgument(`${at}.name`, "must have 1 to 64 letters, digits, _ or -");
  if (tool.description.length > limits.descriptionCharsMax) {
    throw overLimit(`${at}.description`, `must have at most ${limits.descriptionCharsMax} characters`);
  }
  const schemaBytes = tool.parametersSchema === undefined ? 0 : utf8Length(JSON.stringify(tool.parametersSchema));
  if (schemaBytes > limits.schemaBytesMax) {
    throw overLimit(`${at}.parameters_schema`, `takes ${schemaBytes} bytes; at most ${limits.schemaBytesMax} are allowed`);
  }
  return tool.name.length + utf8Length(tool.description) + schemaBytes;
}

/** A tool as a turn has it. One whose category is not said acts on the world. */
export function toolSpec(tool: ToolSchema, limits: AgentLimits): ClientToolSpec {
  const { name, description, parametersSchema: inputSchema, category, timeoutMs } = tool;
  return {
    definition: create(ToolDefinitionSchema, { name, description, ...(inputSchema === undefined ? {} : { inputSchema }) }),
    category: category === ToolCategoryHint.TOOL_CATEGORY_PURE ? "pure" : "physical",
    timeoutMs: timeoutMs === 0 ? limits.toolTimeoutDefaultMs : Math.min(timeoutMs, limits.toolTimeoutMaxMs),
  };
}

/** A change of a session's tools. */
export interface ToolChange {
  /** Whose tools these are; "" for nobody's in particular. */
  readonly source: string;
  readonly tools: readonly ToolSchema[];
}

/**
 * The tools after a change: those named `{source}__…` are gone, and the new ones are there, each in the place of one that has its name. Without
 * a source nothing is removed.
 */
export function changedTools(tools: readonly ToolSchema[], { source, tools: added }: ToolChange): ToolSchema[] {
  const prefix = `${source}__`;
  const names = new Set(added.map(({ name }) => name));
  const kept = tools.filter(({ name }) => !names.has(name) && (source === "" || !name.startsWith(prefix)));
  return [...kept, ...added];
}
