/**
 * Functions as tools.
 *
 * Invariants:
 * - A function that throws is a tool that failed: its message is the tool's own words, which the model is given. An error's stack and
 *   cause stay here.
 * - What a function returns is taken as JSON: what JSON has no word for is left out, as `JSON.stringify` does. A text is the result's
 *   content, everything else its output, and neither is told twice.
 * - What is too large goes to the host's blob store and is cut here (`bounded-output.ts`).
 */

import { create, type JsonObject } from "@bufbuild/protobuf";
import { textStart } from "../base/bytes.ts";
import { deeplyFrozen, HoldfastError, invalidArgument, type SessionUid } from "../base/index.ts";
import { ToolDefinitionSchema, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { HostTool, ToolCall, ToolDefinition, ToolExecutor, ToolResult, ToolRun } from "../spi/index.ts";
import {
  boundedOutput,
  DEFAULT_OUTPUT_BYTES_MAX,
  OUTPUT_BYTES_LIMIT,
  textPart,
  type OutputTerms,
  type ToolOutput,
} from "./bounded-output.ts";
import { isJsonObject } from "./json.ts";
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
  /** How many bytes of what it returns are kept in the record: 65,536 by default, 393,216 at most. The blob store has the whole. */
  readonly outputBytesMax?: number | undefined;
  /** Does it. A throw is a failed tool, with the error's message. */
  readonly run: (args: Args, run: FunctionToolRun) => Promise<FunctionToolOutput> | FunctionToolOutput;
}

/** What every provider takes as a tool's name. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const ANYTHING = { type: "object" } as const;

/**
 * Functions as the tools of a host, by name. Throws INVALID_ARGUMENT for a name that no provider takes, for what is no schema, and for a
 * limit beyond what a record holds.
 */
export function createFunctionTools(tools: Readonly<Record<string, FunctionTool>>): ToolExecutor {
  return new FunctionTools(tools);
}

interface Entry {
  readonly host: HostTool;
  readonly check: SchemaCheck;
  readonly tool: FunctionTool;
  readonly outputBytesMax: number;
}

class FunctionTools implements ToolExecutor {
  readonly #entries = new Map<string, Entry>();

  constructor(tools: Readonly<Record<string, FunctionTool>>) {
    for (const [name, tool] of Object.entries(tools)) {
      if (!NAME.test(name)) throw invalidArgument(`tools.${name}`, "must have a name of 1 to 64 letters, digits, _ and -");
      const check = compileSchema(tool.inputSchema ?? ANYTHING, `tools.${name}.inputSchema`);
      const host = { definition: definitionOf(name, tool), idempotent: tool.idempotent === true };
      this.#entries.set(name, { tool, check, host, outputBytesMax: outputBytesMaxOf(tool, `tools.${name}.outputBytesMax`) });
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

  async execute(call: ToolCall, { session, signal, blobs, progress = () => undefined }: ToolRun): Promise<ToolResult> {
    const entry = this.#entries.get(call.tool);
    if (entry === undefined) throw new HoldfastError("failed_precondition", "tool: no tool of this host has this name");
    const run = { session, signal, progress, idempotencyKey: call.idempotencyKey, callId: call.id };
    const terms = { blobs, outputBytesMax: entry.outputBytesMax };
    let output: ToolOutput | undefined;
    try {
      output = outputOf(await entry.tool.run(call.args ?? {}, run));
    } catch (error) {
      return failureOf(call.id, error, terms);
    }
    return create(ToolResultSchema, { id: call.id, ...(output === undefined ? {} : await boundedOutput(output, terms)) });
  }
}

function definitionOf(name: string, { description, inputSchema = ANYTHING }: FunctionTool): ToolDefinition {
  return deeplyFrozen(create(ToolDefinitionSchema, { name, description, inputSchema: jsonObject(inputSchema) ?? {} }));
}

function outputBytesMaxOf({ outputBytesMax = DEFAULT_OUTPUT_BYTES_MAX }: FunctionTool, at: string): number {
  if (Number.isInteger(outputBytesMax) && outputBytesMax >= 1 && outputBytesMax <= OUTPUT_BYTES_LIMIT) return outputBytesMax;
  throw invalidArgument(at, `must be a whole number from 1 to ${OUTPUT_BYTES_LIMIT}`);
}

/** What a function returned; undefined where that is nothing. */
function outputOf(returned: FunctionToolOutput): ToolOutput | undefined {
  if (returned === undefined || returned === null) return undefined;
  if (typeof returned === "string") return { parts: [textPart(returned)], output: undefined, whole: () => returned };
  const text = JSON.stringify(returned);
  const json = JSON.parse(text) as JsonObject[string];
  return { parts: [], output: isJsonObject(json) ? json : { value: json }, whole: () => text };
}

const ERROR_BYTES_MAX = 8 * 1024;

async function failureOf(id: string, error: unknown, terms: OutputTerms): Promise<ToolResult> {
  const text = error instanceof Error && error.message !== "" ? error.message : "the tool failed and did not say why";
  const { content, ...reference } = await boundedOutput({ parts: [textPart(text)], output: undefined, whole: () => text }, terms);
  return create(ToolResultSchema, { id, isError: true, error: textStart(text, ERROR_BYTES_MAX), content, ...reference });
}

function jsonObject(value: object): JsonObject | undefined {
  const json: unknown = JSON.parse(JSON.stringify(value));
  return isJsonObject(json) ? json : undefined;
}
