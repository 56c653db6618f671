/** Ready-made answers of the model server: what a provider sends for a text, for thinking, for tool calls, for an error. */

import type { StreamStep } from "./model-server.ts";

/** One server-sent event. OpenAI names none; Anthropic names every one. */
export function sse(data: unknown, event?: string): StreamStep {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return { kind: "send", text: `${event === undefined ? "" : `event: ${event}\n`}data: ${text}\n\n` };
}

/** Token counts as the scripted provider reports them. */
export interface ScriptedUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens?: number;
  readonly reasoningTokens?: number;
}

/** What an answer costs where a test does not say. */
export const USAGE: ScriptedUsage = { inputTokens: 7, outputTokens: 3 };

/** One chat completion chunk with this delta. */
export function openAiChunk(delta: unknown, finishReason: string | null = null): StreamStep {
  return sse({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "scripted-2026-01-01",
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  });
}

/** The opening chunk and one chunk for each piece of text. */
export function openAiText(...pieces: readonly string[]): StreamStep[] {
  return [openAiChunk({ role: "assistant", content: "" }), ...pieces.map((content) => openAiChunk({ content }))];
}

/** The end of a chat completion: finish reason, usage, `[DONE]`. */
export function openAiEnd(finishReason = "stop", usage: ScriptedUsage = USAGE): StreamStep[] {
  const counts = {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
  };
  const last = { id: "chatcmpl-1", object: "chat.completion.chunk", model: "scripted-2026-01-01", choices: [], usage: counts };
  return [openAiChunk({}, finishReason), sse(last), sse("[DONE]")];
}

/** The opening of an Anthropic message. */
export function anthropicStart(usage: ScriptedUsage = USAGE): StreamStep[] {
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "scripted-2026-01-01",
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: usage.inputTokens,
      output_tokens: 1,
      cache_read_input_tokens: usage.cachedTokens ?? 0,
      cache_creation_input_tokens: 0,
    },
  };
  return [sse({ type: "message_start", message }, "message_start")];
}

/** One block of an Anthropic message, from its opening to its end. */
export function anthropicBlock(index: number, block: unknown, deltas: readonly unknown[]): StreamStep[] {
  return [
    sse({ type: "content_block_start", index, content_block: block }, "content_block_start"),
    ...deltas.map((delta) => sse({ type: "content_block_delta", index, delta }, "content_block_delta")),
    sse({ type: "content_block_stop", index }, "content_block_stop"),
  ];
}

/** A text block, one delta for each piece. */
export function anthropicText(index: number, ...pieces: readonly string[]): StreamStep[] {
  const deltas = pieces.map((text) => ({ type: "text_delta", text }));
  return anthropicBlock(index, { type: "text", text: "" }, deltas);
}

/** The end of an Anthropic message: stop reason, final usage, `message_stop`. */
export function anthropicEnd(stopReason = "end_turn", usage: ScriptedUsage = USAGE): StreamStep[] {
  const counts = {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    cache_read_input_tokens: usage.cachedTokens ?? 0,
    cache_creation_input_tokens: 0,
    output_tokens_details: { thinking_tokens: usage.reasoningTokens ?? 0 },
  };
  const delta = { stop_reason: stopReason, stop_sequence: null };
  return [sse({ type: "message_delta", delta, usage: counts }, "message_delta"), sse({ type: "message_stop" }, "message_stop")];
}
