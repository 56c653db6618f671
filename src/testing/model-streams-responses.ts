/** Ready-made answers of the model server in the events of OpenAI's Responses API. */

import type { StreamStep } from "./model-server.ts";
import { sse, USAGE, type ScriptedUsage } from "./model-streams.ts";

/** One event; the API names each by its type. */
export function responsesEvent(type: string, fields: object): StreamStep {
  return sse({ type, ...fields }, type);
}

/** The opening of a response. */
export function responsesStart(): StreamStep[] {
  return [responsesEvent("response.created", { response: { id: "resp_1", object: "response", status: "in_progress", output: [] } })];
}

/** A message of the assistant up to its last piece of text. */
export function responsesOpenText(index: number, pieces: readonly string[], item: object = {}): StreamStep[] {
  const id = `msg_${index}`;
  return [
    responsesEvent("response.output_item.added", {
      output_index: index,
      item: { id, type: "message", status: "in_progress", role: "assistant", content: [], ...item },
    }),
    ...pieces.map((delta) => responsesEvent("response.output_text.delta", { item_id: id, output_index: index, content_index: 0, delta })),
  ];
}

/** A whole message of the assistant. */
export function responsesText(index: number, pieces: readonly string[], item: object = {}): StreamStep[] {
  const content = [{ type: "output_text", text: pieces.join(""), annotations: [] }];
  const whole = { id: `msg_${index}`, type: "message", status: "completed", role: "assistant", content, ...item };
  return [...responsesOpenText(index, pieces, item), responsesEvent("response.output_item.done", { output_index: index, item: whole })];
}

/** A reasoning item whose summary arrives in these paragraphs; `item` is what it is when it is done. */
export function responsesReasoning(index: number, item: { readonly id: string }, paragraphs: readonly string[] = []): StreamStep[] {
  const opened = { id: item.id, type: "reasoning", summary: [], encrypted_content: "incomplete" };
  return [
    responsesEvent("response.output_item.added", { output_index: index, item: opened }),
    ...paragraphs.map((delta, place) =>
      responsesEvent("response.reasoning_summary_text.delta", { item_id: item.id, output_index: index, summary_index: place, delta }),
    ),
    responsesEvent("response.output_item.done", { output_index: index, item }),
  ];
}

/** A function call whose arguments arrive in these pieces. */
export function responsesCall(index: number, callId: string, name: string, pieces: readonly string[]): StreamStep[] {
  const item = { id: `fc_${index}`, type: "function_call", call_id: callId, name };
  return [
    responsesEvent("response.output_item.added", { output_index: index, item: { ...item, arguments: "", status: "in_progress" } }),
    ...pieces.map((delta) => responsesEvent("response.function_call_arguments.delta", { item_id: item.id, output_index: index, delta })),
    responsesEvent("response.output_item.done", {
      output_index: index,
      item: { ...item, arguments: pieces.join(""), status: "completed" },
    }),
  ];
}

/** The end of a response; `reason` is why it is incomplete. */
export function responsesEnd(usage: ScriptedUsage = USAGE, reason?: string): StreamStep[] {
  const counts = {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens ?? 0, cache_write_tokens: 0 },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
  const status = reason === undefined ? "completed" : "incomplete";
  const details = reason === undefined ? null : { reason };
  const response = { id: "resp_1", object: "response", status, incomplete_details: details, output: [], usage: counts };
  return [responsesEvent(`response.${status}`, { response })];
}
