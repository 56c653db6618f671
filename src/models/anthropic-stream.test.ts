import { describe, expect, it } from "vitest";
import type { ModelChunk } from "../spi/index.ts";
import { translateAnthropic } from "./anthropic-stream.ts";
import { ProviderFaultError } from "./fault.ts";

const context = { provider: "anthropic", modelId: "claude-x", takenCallIds: new Set<string>(), newCallId: () => "new" };
const start = (usage: unknown = { input_tokens: 3 }) => ({ type: "message_start", message: { usage } });
const open = (index: number, block: unknown) => ({ type: "content_block_start", index, content_block: block });
const delta = (index: number, fields: unknown) => ({ type: "content_block_delta", index, delta: fields });
const close = (index: number) => ({ type: "content_block_stop", index });
const end = (stop = "end_turn", usage: unknown = { output_tokens: 9 }) => ({ type: "message_delta", delta: { stop_reason: stop }, usage });
function translate(...events: readonly unknown[]) {
  const translation = translateAnthropic(context);
  const chunks: ModelChunk[] = events.flatMap((event) => [...translation.push(event)]);
  const { response, facts, chunks: rest } = translation.finish();
  return { chunks: [...chunks, ...rest], parts: response.message.parts.map(({ part }) => part), usage: response.usage, facts };
}
const decode = (bytes: unknown) => new TextDecoder().decode(bytes as Uint8Array);

describe("a stream of Anthropic events", () => {
  it("keeps thinking and its signature as they came, and shows the thinking (I2)", () => {
    const { chunks, parts } = translate(
      start(),
      open(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "thinking_delta", thinking: "first \ud83d" }),
      delta(0, { type: "thinking_delta", thinking: "\ude00 then" }),
      delta(0, { type: "signature_delta", signature: "Eq+/" }),
      delta(0, { type: "signature_delta", signature: "QB==" }),
      close(0),
      open(1, { type: "redacted_thinking", data: "opaque==" }),
      close(1),
      open(2, { type: "text", text: "" }),
      delta(2, { type: "text_delta", text: "4" }),
      close(2),
      end(),
    );
    expect(chunks).toEqual([
      { kind: "reasoning", partIndex: 0, text: "first " },
      { kind: "reasoning", partIndex: 0, text: "😀 then" },
      { kind: "text", partIndex: 2, text: "4" },
    ]);
    expect(parts.map((part) => part.case)).toEqual(["reasoning", "reasoning", "text"]);
    const [thinking, redacted] = parts;
    if (thinking?.case !== "reasoning" || redacted?.case !== "reasoning") throw new Error("no reasoning parts");
    expect(thinking.value).toMatchObject({ provider: "anthropic", modelId: "claude-x", ordinal: 0, itemId: "", validityScope: "" });
    expect(decode(thinking.value.opaque.value)).toBe('{"type":"thinking","thinking":"first 😀 then","signature":"Eq+/QB=="}');
    expect(thinking.value.summary[0]?.part).toMatchObject({ case: "text", value: { text: "first 😀 then" } });
    expect(redacted.value).toMatchObject({ ordinal: 1, summary: [] });
    expect(decode(redacted.value.opaque.value)).toBe('{"type":"redacted_thinking","data":"opaque=="}');
  });

  it("keeps the signature of thinking that is not shown", () => {
    const { chunks, parts } = translate(
      start(),
      open(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "signature_delta", signature: "S==" }),
      end(),
    );
    expect(chunks).toEqual([]);
    expect(parts).toMatchObject([{ case: "reasoning", value: { summary: [], opaque: { case: "opaqueBytes" } } }]);
  });

  it("puts tool calls together, those whose input came at once too", () => {
    const { parts, facts } = translate(
      start(),
      open(0, { type: "tool_use", id: "toolu_1", name: "read", input: {} }),
      delta(0, { type: "input_json_delta", partial_json: "" }),
      delta(0, { type: "input_json_delta", partial_json: '{"path": "' }),
      delta(0, { type: "input_json_delta", partial_json: 'x"}' }),
      close(0),
      open(1, { type: "tool_use", id: "toolu_2", name: "now", input: {} }),
      close(1),
      open(2, { type: "tool_use", id: "toolu_3", name: "list", input: { all: true } }),
      close(2),
      open(3, { type: "tool_use", id: "toolu_4", name: "cut", input: {} }),
      delta(3, { type: "input_json_delta", partial_json: '{"path": "' }),
      end("max_tokens"),
    );
    expect(parts).toMatchObject([
      { case: "toolCall", value: { id: "toolu_1", tool: "read", args: { path: "x" } } },
      { case: "toolCall", value: { id: "toolu_2", tool: "now", args: {} } },
      { case: "toolCall", value: { id: "toolu_3", tool: "list", args: { all: true } } },
      { case: "toolCall", value: { id: "toolu_4", tool: "cut" } },
    ]);
    expect(parts[3]?.value).not.toHaveProperty("args");
    expect(facts.stopReason).toBe("max_tokens");
  });

  it("passes over what it does not know: events, blocks, deltas, and text that stays empty", () => {
    const { chunks, parts } = translate(
      start(),
      { type: "something_new", data: 1 },
      open(0, { type: "server_tool_use", id: "s", name: "web_search" }),
      delta(0, { type: "input_json_delta", partial_json: "{}" }),
      close(0),
      open(1, { type: "text", text: "" }),
      close(1),
      open(2, { type: "text", text: "a" }),
      delta(2, { type: "citations_delta", citation: {} }),
      delta(2, { type: "text_delta", text: "b" }),
      close(2),
      end(),
    );
    expect(chunks).toEqual([
      { kind: "text", partIndex: 0, text: "a" },
      { kind: "text", partIndex: 0, text: "b" },
    ]);
    expect(parts).toMatchObject([{ case: "text", value: { text: "ab" } }]);
  });

  it("counts cached tokens into the input, and takes the last word on each count", () => {
    const first = { input_tokens: 3, output_tokens: 1, cache_read_input_tokens: 100, cache_creation_input_tokens: 20 };
    const last = { input_tokens: null, output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } };
    const { usage, facts } = translate(start(first), end("end_turn", last));
    expect(usage).toMatchObject({ model: "claude-x", inputTokens: 123n, outputTokens: 9n, reasoningTokens: 4n });
    expect(facts).toEqual({ stopReason: "end_turn", cachedInputTokens: 100, cacheWriteTokens: 20 });
  });

  it("is cut when no event says why it stopped", () => {
    expect(() => translate(start(), open(0, { type: "text", text: "a" }))).toThrow(new ProviderFaultError({ kind: "cut" }));
  });

  it.each([
    5,
    { type: "message_start" },
    open(0, "text"),
    { type: "content_block_start", content_block: { type: "text" } },
    delta(7, { type: "text_delta", text: "a" }),
    open(0, { type: "redacted_thinking" }),
    { type: "message_delta" },
  ])("breaks the protocol with %j", (event) => {
    expect(() => translate(event, end())).toThrow(new ProviderFaultError({ kind: "malformed" }));
  });
});
