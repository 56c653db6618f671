import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MessageSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { textMessage, type ModelRequest } from "../spi/index.ts";
import { throughJournal, toolMessage } from "../testing/model-history.ts";
import { openAiRequestBody } from "./openai-request.ts";
import { translateOpenAi } from "./openai-stream.ts";

const PROVIDER = "openai";
const MODEL = "thinker";

/** The message of an answer that came in these deltas, as a later turn has it. */
function answered(...deltas: readonly object[]): Message {
  const translation = translateOpenAi({ provider: PROVIDER, modelId: MODEL, takenCallIds: new Set(), newCallId: () => "new" });
  for (const delta of deltas) translation.push({ choices: [{ index: 0, delta }] });
  translation.push({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  return throughJournal(translation.finish().response.message);
}

/** The assistant's messages of the request that follows. */
function sentBack(messages: readonly Message[], request: Partial<ModelRequest> = {}, provider = PROVIDER): readonly unknown[] {
  const options = { provider, modelPrefix: "", maxTokensField: "max_tokens", includeUsage: false } as const;
  const body = openAiRequestBody({ model: MODEL, messages: [textMessage("user", "go"), ...messages], ...request }, options);
  return body.messages.filter(({ role }) => role === "assistant");
}

const words = (message: Message): string =>
  message.parts.map(({ part }) => (part.case === "reasoning" ? JSON.stringify(part.value.summary[0]?.part.value) : "")).join("");
const call = (id: string, more: object = {}) => ({
  index: Number(id),
  id,
  type: "function",
  function: { name: "t", arguments: "{}" },
  ...more,
});
const opaque = (text: string) =>
  create(MessageSchema, {
    role: "assistant",
    parts: [
      {
        part: {
          case: "reasoning",
          value: { provider: PROVIDER, modelId: MODEL, opaque: { case: "opaqueBytes", value: new TextEncoder().encode(text) } },
        },
      },
      { part: { case: "text", value: { text: "x" } } },
    ],
  });

describe("the reasoning of a server that speaks the chat API", () => {
  it.each(["reasoning_content", "reasoning"])("goes back as %s, where that is where it came", (field) => {
    const message = answered({ content: "", [field]: "Let me " }, { [field]: "see \ud83d" }, { [field]: "\ude00." }, { content: "4." });
    expect(words(message)).toContain("Let me see 😀.");
    expect(sentBack([message])).toEqual([{ role: "assistant", content: "4.", [field]: "Let me see 😀." }]);
  });

  it("goes back once where a server sends it in two fields", () => {
    const message = answered({ reasoning_content: "a", reasoning: "a" }, { reasoning_content: "b", reasoning: "b" }, { content: "4." });
    expect(sentBack([message])).toEqual([{ role: "assistant", content: "4.", reasoning_content: "ab" }]);
  });

  it("goes back in blocks, each put together from its pieces, where there are any", () => {
    const text = (more: object) => ({ reasoning_details: [{ type: "reasoning.text", format: "f", index: 0, ...more }] });
    const sealed = { type: "reasoning.encrypted", data: "S+/=", id: "tool_1", index: 1, later: { b: 1, a: [null] } };
    const message = answered(
      { reasoning: "Let ", ...text({ text: "Let ", signature: null }) },
      { reasoning: "me.", ...text({ text: "me." }) },
      text({ signature: "Sig==" }),
      { reasoning_details: [sealed] },
      { reasoning_details: [sealed] },
      { reasoning_details: [{ type: "reasoning.summary", summary: "In ", index: 2 }] },
      {
        reasoning_details: [
          { type: "reasoning.summary", summary: "short.", index: 2 },
          { type: "reasoning.summary", summary: "!", index: 3 },
        ],
      },
      { content: "4." },
    );
    expect(words(message)).toContain("Let me.In short.!");
    expect(sentBack([message])).toEqual([
      {
        role: "assistant",
        content: "4.",
        reasoning_details: [
          { type: "reasoning.text", format: "f", index: 0, text: "Let me.", signature: "Sig==" },
          sealed,
          sealed,
          { type: "reasoning.summary", summary: "In short.", index: 2 },
          { type: "reasoning.summary", summary: "!", index: 3 },
        ],
      },
    ]);
  });

  it("goes back with each call that came with some", () => {
    const extra = { google: { thought_signature: "AAAA+/=" } };
    const message = answered({ tool_calls: [call("0", { extra_content: extra })] }, { tool_calls: [call("1")] });
    expect(sentBack([message, toolMessage("0", "1")])).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "0", type: "function", function: { name: "t", arguments: "{}" }, extra_content: extra },
          { id: "1", type: "function", function: { name: "t", arguments: "{}" } },
        ],
      },
    ]);
  });

  it("stays behind for another model and another provider, and where the params say so", () => {
    const message = answered({ reasoning_content: "a", tool_calls: [call("0", { extra_content: { s: 1 } })] });
    const bare = [
      { role: "assistant", content: null, tool_calls: [{ id: "0", type: "function", function: { name: "t", arguments: "{}" } }] },
    ];
    const messages = [message, toolMessage("0")];
    expect(sentBack(messages, { model: "other" })).toEqual(bare);
    expect(sentBack(messages, {}, "another")).toEqual(bare);
    expect(sentBack(messages, { params: { reasoning_history: "drop" } })).toEqual(bare);
    expect(sentBack(messages, { params: { reasoning_history: "keep" } })).not.toEqual(bare);
    expect(() => sentBack(messages, { params: { reasoning_history: "some" } })).toThrow(
      "params.reasoning_history: must be one of keep, drop",
    );
  });

  it("is said to be empty on calls without it, where other messages have it", () => {
    const first = answered({ tool_calls: [call("0")] });
    const second = answered({ reasoning_content: "a", tool_calls: [call("1")] });
    const contents = (messages: readonly Message[]) =>
      sentBack(messages).map((message) => (message as { readonly reasoning_content?: string }).reasoning_content);
    expect(contents([first, toolMessage("0"), second, toolMessage("1"), answered({ content: "b" })])).toEqual(["", "a", undefined]);
    expect(contents([first, toolMessage("0")])).toEqual([undefined]);
  });

  it.each([
    ["half of a surrogate pair in a text", '{"reasoning_content":"\\ud83d"}'],
    ["half of one in a block", '{"reasoning_details":[{"type":"t","data":{"a":["\\ud83d"]}}]}'],
    ["half of one in a key", '{"reasoning_details":[{"\\ud83d":1}]}'],
    ["another type of text", '{"reasoning":1}'],
    ["blocks that are none", '{"reasoning_details":[1]}'],
    ["no object", "[]"],
    ["no JSON", "{"],
  ])("stays behind with %s", (_what, kept) => {
    expect(sentBack([opaque(kept)])).toEqual([{ role: "assistant", content: "x" }]);
  });

  it("brings nothing else into a message, whatever stands beside it", () => {
    expect(sentBack([opaque('{"reasoning":"a","content":"evil","role":"system","__proto__":{"b":1}}')])).toEqual([
      { role: "assistant", content: "x", reasoning: "a" },
    ]);
  });

  it("is nothing where a server uses its names for something else", () => {
    const message = answered(
      { reasoning_details: "none", content: "4." },
      { reasoning_details: [1], tool_calls: [call("0", { extra_content: 7 })] },
    );
    expect(message.parts.map(({ part }) => part.case)).toEqual(["text", "toolCall"]);
  });
});
