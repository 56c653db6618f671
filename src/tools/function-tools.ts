/**
 * Functions as tools.
 *
 * Invariants:
 * - A function that throws is a tool that failed: its message is the tool's own words, which the model is given. An error's stack and
 *   cause stay here.
 * - What a function returns is taken as JSON: what JSON has no word for is left out, as `JSON.stringify` does.
 */

import { create, type JsonObject } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument, type SessionUid } from "../base/index.ts";
import { PartSchema, ToolDefinitionSchema, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { HostTool, ToolCall, ToolDefinition, ToolExecutor, ToolResult, ToolRun } from "../spi/index.ts";
import { compileSchema, type SchemaCheck } from "./schema-check.ts";

/** What a function is told beside its arguments. */
export interface FunctionToolRun {
  readonly session: SessionUid;
  /** Names the effect, together with the session: hand it on to whatever can tell a repeated request by it. */
  readonly idempotencyKey: string;
  readonly callId: string;
  /** Fires when the turn is cancelled or the host shuts down. */
  readonly signal: AbortSignal;
  /** Says how far it has come. Never journaled. */
  readonly progress: (detail: string) => void;
}

/** What a function returns: a text, a JSON object, or nothing. */
export type FunctionToolOutput = string | object | undefined | void;

/** One tool. */
export interface FunctionTool<Args = JsonObject> {
  /** For the model. */
  readonly description: string;
  /** A JSON Schema of the arguments, an object. Default: anything. Calls that do not fit are refused before anything is recorded. */
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined;
  /**
   * True when a second run under the same idempotency key has no further effect, so that a call which a crash interrupted may be run
   * again. Default false: its outcome is then unknown until a person settles it.
   */
  readonly idempotent?: boolean | undefined;
  /** Does it. A throw is a failed tool, with the error's message. */
  readonly run: (args: Args, run: FunctionToolRun) => Promise<FunctionToolOutput> | FunctionToolOutput;
}

/** What every provider takes as a tool's name. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const ANYTHING = { type: "object" } as const;

/** Functions as the tools of a host, by name. Throws INVALID_ARGUMENT for a name that no provider takes and for what is no schema. */
export function createFunctionTools(tools: Readonly<Record<string, FunctionTool>>): ToolExecutor {
  return new FunctionTools(tools);
}

interface Entry {
  readonly host: HostTool;
  readonly check: SchemaCheck;
  readonly tool: FunctionTool;
}

class FunctionTools implements ToolExecutor {
  readonly #entries = new Map<string, Entry>();

  constructor(tools: Readonly<Record<string, FunctionTool>>) {
    for (const [name, tool] of Object.entries(tools)) {
      if (!NAME.test(name)) throw invalidArgument(`tools.${name}`, "must have a name of 1 to 64 letters, digits, _ and -");
      const check = compileSchema(tool.inputSchema ?? ANYTHING, `tools.${name}.inputSchema`);
      this.#entries.set(name, { tool, check, host: { definition: definitionOf(name, tool), idempotent: tool.idempotent === true } });
    }
  }

  list(): readonly HostTool[] {
    return [...this.#entries.values()].map(({ host }) => host);
  }

  find(name: string): HostTool | undefined {
    return this.#entries.get(name)?.host;
  }

  check(call: ToolCall): string | undefined {
    return this.#entries.get(call.tool)?.check(call.args ?? {});
  }

  async execute(call: ToolCall, { session, signal, progress = () => undefined }: ToolRun): Promise<ToolResult> {
    const entry = this.#entries.get(call.tool);
    if (entry === undefined) throw new HoldfastError("failed_precondition", "tool: no tool of this host has this name");
    const run = { session, signal, progress, idempotencyKey: call.idempotencyKey, callId: call.id };
    try {
      return resultOf(call.id, await entry.tool.run(call.args ?? {}, run));
    } catch (error) {
      return failureOf(call.id, error);
    }
  }
}

function definitionOf(name: string, { description, inputSchema = ANYTHING }: FunctionTool): ToolDefinition {
  return create(ToolDefinitionSchema, { name, description, inputSchema: jsonObject(inputSchema) ?? {} });
}

function resultOf(id: string, output: FunctionToolOutput): ToolResult {
  if (output === undefined || output === null) return create(ToolResultSchema, { id });
  if (typeof output === "string") return create(ToolResultSchema, { id, content: [textPart(output)] });
  const json: unknown = JSON.parse(JSON.stringify(output));
  const object = isObject(json) ? json : { value: json as JsonObject[string] };
  return create(ToolResultSchema, { id, output: object, content: [textPart(JSON.stringify(json))] });
}

function failureOf(id: string, error: unknown): ToolResult {
  const text = error instanceof Error && error.message !== "" ? error.message : "the tool failed and did not say why";
  return create(ToolResultSchema, { id, isError: true, error: text, content: [textPart(text)] });
}

function textPart(text: string) {
  return create(PartSchema, { part: { case: "text", value: { text } } });
}

function jsonObject(value: object): JsonObject | undefined {
  const json: unknown = JSON.parse(JSON.stringify(value));
  return isObject(json) ? json : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
