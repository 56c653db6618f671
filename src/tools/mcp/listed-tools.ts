/**
 * From what a server lists to the tools that the host offers. Pure.
 *
 * Invariants:
 * - The order is that of the names, whatever the server's is, so that what a model is sent stays the same.
 * - A tool that cannot be offered is left out with a reason; it takes no other down.
 * - A schema is passed on as it is, or not at all.
 */

import { create, type JsonObject } from "@bufbuild/protobuf";
import { ToolDefinitionSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { textStart } from "../../base/bytes.ts";
import { deeplyFrozen } from "../../base/index.ts";
import type { HostTool } from "../../spi/index.ts";
import { isJsonObject, recordableObject } from "../json.ts";
import { compileSchema, type SchemaCheck } from "../schema-check.ts";
import type { McpServerOptions } from "./options.ts";
import { hostToolName } from "./tool-name.ts";

/** One tool of a server. */
export interface McpTool {
  readonly host: HostTool;
  /** The server's own name for it. */
  readonly tool: string;
  readonly check: SchemaCheck;
}

/** What a list comes to. */
export interface ListedTools {
  /** By the names under which the host offers them, in order. */
  readonly tools: ReadonlyMap<string, McpTool>;
  readonly left: readonly LeftTool[];
}

/** A tool that is not offered. */
export interface LeftTool {
  readonly tool: string;
  readonly why: string;
}

/** More tools of one server than any model is helped by; `allow` chooses. */
export const TOOLS_MAX = 512;
const SCHEMA_BYTES_MAX = 64 * 1024;
const SCHEMA_DEPTH_MAX = 32;
const DESCRIPTION_BYTES_MAX = 16 * 1024;
const TOOL_NAME_LENGTH_MAX = 1_024;

/** The tools of the server `server` in what it listed. */
export function listedTools(
  server: string,
  listed: readonly unknown[],
  options: Pick<McpServerOptions, "allow" | "idempotent" | "trustHints">,
): ListedTools {
  const tools = new Map<string, McpTool>();
  const left: LeftTool[] = [];
  for (const [name, each] of byName(server, listed, left)) {
    if (options.allow?.includes(each.name) === false) continue;
    const why = tools.size >= TOOLS_MAX ? `more than ${TOOLS_MAX} tools` : tools.has(name) ? "another tool has its name" : undefined;
    const made = why ?? hostTool(name, each, options);
    if (typeof made === "string") left.push({ tool: each.name, why: made });
    else tools.set(name, made);
  }
  return { tools, left };
}

/** A tool as a server lists it: named, and otherwise anything. */
interface Listed {
  readonly name: string;
  readonly description: unknown;
  readonly inputSchema: unknown;
  readonly annotations: unknown;
}

function byName(server: string, listed: readonly unknown[], left: LeftTool[]): readonly (readonly [string, Listed])[] {
  const named: [string, Listed][] = [];
  for (const each of listed) {
    const { name, description, inputSchema, annotations } = isJsonObject(each) ? each : {};
    if (typeof name !== "string" || name === "" || name.length > TOOL_NAME_LENGTH_MAX) left.push({ tool: "", why: "it has no name" });
    else named.push([hostToolName(server, name.toWellFormed()), { name, description, inputSchema, annotations }]);
  }
  return named.sort(([one, { name: oneTool }], [other, { name: otherTool }]) => compare(one, other) || compare(oneTool, otherTool));
}

/** By code units: the same in every locale. */
function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

function hostTool(
  name: string,
  { name: tool, description, inputSchema, annotations }: Listed,
  { idempotent = [], trustHints = false }: Pick<McpServerOptions, "idempotent" | "trustHints">,
): McpTool | string {
  const schema = recordableObject(inputSchema, SCHEMA_DEPTH_MAX);
  if (schema === undefined) return "its schema is no object, or is nested too deep";
  if (Buffer.byteLength(JSON.stringify(schema)) > SCHEMA_BYTES_MAX) return `its schema has more than ${SCHEMA_BYTES_MAX} bytes`;
  const words = typeof description === "string" ? textStart(description.toWellFormed(), DESCRIPTION_BYTES_MAX) : "";
  const definition = deeplyFrozen(create(ToolDefinitionSchema, { name, description: words, inputSchema: schema }));
  const isIdempotent = idempotent.includes(tool) || (trustHints && hintsIdempotent(annotations));
  return { tool, host: { definition, idempotent: isIdempotent }, check: lazyCheck(schema) };
}

function hintsIdempotent(annotations: unknown): boolean {
  return isJsonObject(annotations) && (annotations["readOnlyHint"] === true || annotations["idempotentHint"] === true);
}

/** Compiling takes milliseconds a schema, and most tools of a long list are never called. */
function lazyCheck(schema: JsonObject): SchemaCheck {
  let check: SchemaCheck | undefined;
  return (value) => {
    try {
      check ??= compileSchema(schema, "tool");
    } catch {
      check = () => "cannot be checked: the tool's own schema is no JSON Schema of draft 07 or 2020-12";
    }
    return check(value);
  };
}
