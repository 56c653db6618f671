import { describe, expect, it } from "vitest";
import type { ModelChunk } from "../spi/index.ts";
import { ProviderFaultError } from "./fault.ts";
import { translateOpenAi } from "./openai-stream.ts";

const context = (taken: readonly string[] = []) => {
  let made = 0;
  return { provider: "openai", modelId: "gpt-x", takenCallIds: new Set(taken), newCallId: () => `new-${++made}` };
};
const delta = (fields: unknown, finish: string | null = null) => ({ choices: [{ index: 0, delta: fields, finish_reason: finish }] });
function translate(events: readonly unknown[], taken: readonly string[] = []) {
  const translation = translateOpenAi(context(taken));
  const chunks: ModelChunk[] = events.flatMap((event) => [...translation.push(event)]);
  const { response, facts, chunks: rest } = translation.finish();
  return { chunks: [...chunks, ...rest], parts: response.message.parts.map(({ part }) => part), usage: response.usage, facts };
}
const callDelta = (fields: unknown) => delta({ tool_calls: [fields] });

describe("a stream of chat completion chunks", () => {
  it("puts parts in the order in which they begin, and numbers its chunks by them", () => {
    const { chunks, parts } = translate([
      delta({ role: "assistant", content: "" }),
      delta({ reasoning_content: "let me " }),
      delta({ reasoning: "see" }),
      delta({ content: "It is " }),
      delta({ content: "4." }),
      delta({}, "stop"),
    ]);
    expect(chunks).toEqual([
      { kind: "reasoning", partIndex: 0, text: "let me " },
      { kind: "reasoning", partIndex: 0, text: "see" },
      { kind: "text", partIndex: 1, text: "It is " },
      { kind: "text", partIndex: 1, text: "4." },
    ]);
    expect(parts).toMatchObject([
      {
        case: "reasoning",
        value: {
          provider: "openai",
          modelId: "gpt-x",
          ordinal: 0,
          opaque: { case: "opaqueBytes", value: new TextEncoder().encode('{"reasoning_content":"let me see"}') },
          summary: [{ part: { value: { text: "let me see" } } }],
        },
      },
      { case: "text", value: { text: "It is 4." } },
    ]);
  });

  it("puts tool calls together from their pieces, several at once", () => {
    const { parts, facts } = translate([
      callDelta({ index: 0, id: "a", type: "function", function: { name: "read", arguments: "" } }),
      callDelta({ index: 1, id: "b", type: "function", function: { name: "list", arguments: "{}" } }),
      callDelta({ index: 0, function: { arguments: '{"path":' } }),
      callDelta({ index: 0, function: { arguments: '"x"}' } }),
      delta({}, "tool_calls"),
    ]);
    expect(parts).toMatchObject([
      { case: "toolCall", value: { id: "a", tool: "read", args: { path: "x" } } },
      { case: "toolCall", value: { id: "b", tool: "list", args: {} } },
    ]);
    expect(facts.stopReason).toBe("tool_calls");
  });

  it("keeps a call whose arguments were cut or are no JSON, without arguments", () => {
    const { parts } = translate([
      callDelta({ index: 0, id: "a", function: { name: "read", arguments: '{"path": "x' } }),
      delta({}, "length"),
    ]);
    expect(parts).toMatchObject([{ case: "toolCall", value: { id: "a", tool: "read" } }]);
    expect(parts[0]?.value).not.toHaveProperty("args");
  });

  it("gives a call a new id where it has none, or one that the conversation has already", () => {
    const { parts } = translate(
      [
        callDelta({ index: 0, function: { name: "a", arguments: "{}" } }),
        callDelta({ index: 1, id: "call_0", function: { name: "b", arguments: "{}" } }),
        callDelta({ index: 2, id: "same", function: { name: "c", arguments: "{}" } }),
        callDelta({ index: 3, id: "same", function: { name: "d", arguments: "{}" } }),
        delta({}, "tool_calls"),
      ],
      ["call_0", "new-2"],
    );
    expect(parts.map((part) => part.case === "toolCall" && part.value.id)).toEqual(["new-1", "new-3", "same", "new-4"]);
  });

  it("tells calls apart where a server numbers none of them, or all with 0", () => {
    const pieces = [
      { id: "a", function: { name: "read", arguments: '{"x":' } },
      { function: { arguments: "1}" } },
      { id: "b", function: { name: "list", arguments: "{}" } },
    ];
    const expected = [
      { case: "toolCall", value: { id: "a", args: { x: 1 } } },
      { case: "toolCall", value: { id: "b", args: {} } },
    ];
    expect(translate([...pieces.map(callDelta), delta({}, "tool_calls")]).parts).toMatchObject(expected);
    const zeros = pieces.map((piece) => callDelta({ index: 0, ...piece }));
    expect(translate([...zeros, delta({}, "tool_calls")]).parts).toMatchObject(expected);
  });

  it("takes a refusal as text, and an answer without anything as an empty message", () => {
    expect(translate([delta({ refusal: "No." }), delta({}, "stop")]).parts).toMatchObject([{ case: "text", value: { text: "No." } }]);
    expect(translate([delta({}, "content_filter")]).parts).toEqual([]);
  });

  it("reads usage from a chunk without choices, and counts what is missing as zero", () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      completion_tokens_details: { reasoning_tokens: 2 },
      prompt_tokens_details: { cached_tokens: 8 },
    };
    const { usage: counted, facts } = translate([delta({ content: "x" }, "stop"), { choices: [], usage }]);
    expect(counted).toMatchObject({ model: "gpt-x", inputTokens: 10n, outputTokens: 5n, reasoningTokens: 2n });
    expect(facts.cachedInputTokens).toBe(8);
    const odd = translate([delta({ content: "x" }, "stop"), { choices: [], usage: { prompt_tokens: "many", completion_tokens: -1 } }]);
    expect(odd.usage).toMatchObject({ inputTokens: 0n, outputTokens: 0n, reasoningTokens: 0n });
  });

  it("is cut when no chunk says why it stopped", () => {
    expect(() => translate([delta({ content: "x" }, "")])).toThrow(new ProviderFaultError({ kind: "cut" }));
  });

  it.each([
    5,
    null,
    [],
    { choices: "none" },
    { choices: [5] },
    delta("text"),
    delta({ content: 5 }),
    delta({ tool_calls: {} }),
    callDelta({ index: -1 }),
    callDelta({ index: 0, function: { name: "a", arguments: {} } }),
  ])("breaks the protocol with %j", (event) => {
    expect(() => translate([event, delta({}, "stop")])).toThrow(new ProviderFaultError({ kind: "malformed" }));
  });

  it("breaks the protocol with a call that names no tool", () => {
    expect(() => translate([callDelta({ index: 0, id: "a" }), delta({}, "tool_calls")])).toThrow(ProviderFaultError);
  });
});
