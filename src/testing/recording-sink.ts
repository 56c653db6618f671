/**
 * An EventSink that keeps what a harness asked for, in order, and answers from a model provider. It records nothing durably
 * and checks nothing: it is there to read a harness's effects as plain values.
 */

import { HoldfastError } from "../base/errors.ts";
import type {
  EventSink,
  ModelChunk,
  ModelFacts,
  ModelProvider,
  ModelRequest,
  ModelResponse,
  ToolCall,
  ToolResult,
  Usage,
} from "../spi/index.ts";

/** One effect that a harness asked for. */
export type RecordedEffect =
  | { readonly kind: "model"; readonly request: ModelRequest; readonly response: ModelResponse }
  | { readonly kind: "output"; readonly text: string }
  | { readonly kind: "toolCall"; readonly call: ToolCall }
  | { readonly kind: "report"; readonly result: ToolResult }
  | { readonly kind: "usage"; readonly usage: Usage };

/** Where the sink's answers come from. */
export interface RecordingSinkOptions {
  /** Answers model calls; without it they fail with FAILED_PRECONDITION. A function stands for a recorded completion. */
  readonly model?: ModelProvider | ((request: ModelRequest) => ModelResponse);
  /** Answers mediated tool calls; without it they fail with FAILED_PRECONDITION. */
  readonly tool?: (call: ToolCall) => ToolResult;
}

/** A sink and what it was asked. */
export interface RecordingSink extends EventSink {
  /** The effects so far; a model call is added when it was answered. */
  readonly effects: readonly RecordedEffect[];
}

/** A new, empty recording sink. */
export function createRecordingSink(options: RecordingSinkOptions = {}): RecordingSink {
  const effects: RecordedEffect[] = [];
  return {
    effects,
    model: async (request, call) => {
      const response = await answer(options.model, request, call?.signal ?? new AbortController().signal);
      effects.push({ kind: "model", request, response });
      return response;
    },
    output: async (text) => void effects.push({ kind: "output", text }),
    toolCall: async (call) => {
      if (options.tool === undefined) throw new HoldfastError("failed_precondition", "tools: none are served here");
      effects.push({ kind: "toolCall", call });
      return options.tool(call);
    },
    report: async (result) => void effects.push({ kind: "report", result }),
    usage: async (usage) => void effects.push({ kind: "usage", usage }),
  };
}

async function answer(model: RecordingSinkOptions["model"], request: ModelRequest, signal: AbortSignal): Promise<ModelResponse> {
  if (model === undefined) throw new HoldfastError("failed_precondition", "model: none is served here");
  if (typeof model === "function") return model(request);
  return (await collectCompletion(model.complete(request, { signal }))).response;
}

/** A completion read to its end. */
export interface CollectedCompletion {
  readonly response: ModelResponse;
  readonly facts: ModelFacts;
  /** The text of the deltas of each part, in the order they came, by part index. */
  readonly deltas: ReadonlyMap<number, readonly string[]>;
}

/** Reads a completion to its end. Throws unless there is exactly one `completed` chunk, and it is the last. */
export async function collectCompletion(chunks: AsyncIterable<ModelChunk>): Promise<CollectedCompletion> {
  const deltas = new Map<number, string[]>();
  let completed: Extract<ModelChunk, { kind: "completed" }> | undefined;
  for await (const chunk of chunks) {
    if (completed !== undefined) throw new Error("a chunk came after the completed one");
    if (chunk.kind === "completed") completed = chunk;
    else deltas.set(chunk.partIndex, [...(deltas.get(chunk.partIndex) ?? []), chunk.text]);
  }
  if (completed === undefined) throw new Error("the completion ended without its completed chunk");
  return { response: completed.response, facts: completed.facts, deltas };
}
