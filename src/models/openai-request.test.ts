import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MessageSchema, ToolChoiceSchema, ToolDefinitionSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { textMessage, ToolChoiceMode, type ModelRequest } from "../spi/index.ts";
import { refusalOf } from "../testing/model-rules.ts";
import { openAiRequestBody } from "./openai-request.ts";

const OPTIONS = { provider: "openai", modelPrefix: "openai/", maxTokensField: "max_tokens", includeUsage: true } as const;
type Parts = NonNullable<Parameters<typeof create<typeof MessageSchema>>[1]>["parts"];
const message = (role: string, parts: Parts): Message => create(MessageSchema, { role, parts: parts ?? [] });
const bodyOf = (request: Partial<ModelRequest>) => {
  const body = openAiRequestBody({ model: "gpt-x", messages: [textMessage("user", "hi")], ...request }, OPTIONS);
  expect(refusalOf("openai", structuredClone(body))).toBeUndefined();
  return body;
};
const messagesOf = (...messages: Message[]) => bodyOf({ messages }).messages;
const bytes = Uint8Array.of(1, 2, 3);

describe("a chat completion request", () => {
  it("is a stream with usage at its end, and holds nothing that was not asked for", () => {
    expect(bodyOf({ messages: [textMessage("system", "be brief"), textMessage("user", "hi")] })).toEqual({
      model: "gpt-x",
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "hi" },
      ],
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("is sent without the routing prefix, which is taken off once", () => {
    expect(bodyOf({ model: "openai/gpt-x" }).model).toBe("gpt-x");
    expect(bodyOf({ model: "openai/openai/gpt-x" }).model).toBe("openai/gpt-x");
    expect(bodyOf({ model: "openai/" }).model).toBe("openai/");
  });

  it("does not ask for usage where the server knows no such option", () => {
    const body = openAiRequestBody({ model: "m", messages: [textMessage("user", "hi")] }, { ...OPTIONS, includeUsage: false });
    expect(body).not.toHaveProperty("stream_options");
  });

  it("holds images, audio and files as the protocol has them, and others in words", () => {
    const [user] = messagesOf(
      message("user", [
        { part: { case: "text", value: { text: "look" } } },
        { part: { case: "file", value: { mime: "image/png", source: { case: "bytes", value: bytes } } } },
        { part: { case: "file", value: { mime: "image/png", source: { case: "uri", value: "https://host/a.png" } } } },
        { part: { case: "file", value: { mime: "audio/mpeg", source: { case: "bytes", value: bytes } } } },
        { part: { case: "file", value: { mime: "application/pdf", name: "a.pdf", source: { case: "bytes", value: bytes } } } },
        {
          part: {
            case: "file",
            value: { mime: "text/csv", name: "a.csv", source: { case: "bytes", value: new TextEncoder().encode("a,b") } },
          },
        },
        { part: { case: "file", value: { mime: "application/pdf", name: "b.pdf", source: { case: "uri", value: "https://host/b.pdf" } } } },
        { part: { case: "file", value: { mime: "image/png", source: { case: "uri", value: "file:///srv/secret.png" } } } },
        { part: { case: "data", value: { data: { a: 1 } } } },
      ]),
    );
    expect(user).toEqual({
      role: "user",
      content: [
        { type: "text", text: "look" },
        { type: "image_url", image_url: { url: "data:image/png;base64,AQID" } },
        { type: "image_url", image_url: { url: "https://host/a.png" } },
        { type: "input_audio", input_audio: { data: "AQID", format: "mp3" } },
        { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AQID" } },
        { type: "text", text: "a,b" },
        { type: "text", text: '[file "b.pdf", application/pdf at https://host/b.pdf; its content is not part of this request]' },
        { type: "text", text: "[file image/png; its content is not part of this request]" },
        { type: "text", text: '{"a":1}' },
      ],
    });
  });

  it("holds tool calls and results, each result a message of its own, their files in a user message behind", () => {
    const sent = messagesOf(
      textMessage("user", "go"),
      message("assistant", [
        { part: { case: "text", value: { text: "I look." } } },
        { part: { case: "toolCall", value: { id: "a", tool: "read", args: { path: "x" } } } },
        { part: { case: "toolCall", value: { id: "b", tool: "list" } } },
      ]),
      message("tool", [
        { part: { case: "toolResult", value: { id: "a", output: { lines: 2 } } } },
        {
          part: {
            case: "toolResult",
            value: {
              id: "b",
              isError: true,
              error: "no such folder",
              content: [{ part: { case: "file", value: { mime: "image/png", source: { case: "bytes", value: bytes } } } }],
            },
          },
        },
      ]),
    );
    expect(sent.slice(1)).toEqual([
      {
        role: "assistant",
        content: "I look.",
        tool_calls: [
          { id: "a", type: "function", function: { name: "read", arguments: '{"path":"x"}' } },
          { id: "b", type: "function", function: { name: "list", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: '{"lines":2}' },
      { role: "tool", tool_call_id: "b", content: "error: no such folder" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AQID" } }] },
    ]);
  });

  it("says each thing of a result once: a failure in words that are its content too, and an output that was cut", () => {
    const text = (words: string) => [{ part: { case: "text", value: { text: words } } as const }];
    const call = message("assistant", [
      { part: { case: "toolCall", value: { id: "a", tool: "t" } } },
      { part: { case: "toolCall", value: { id: "b", tool: "t" } } },
    ]);
    const results = message("tool", [
      { part: { case: "toolResult", value: { id: "a", isError: true, error: "no such folder", content: text("no such folder") } } },
      { part: { case: "toolResult", value: { id: "b", outputUri: "blob:7", outputDigest: "sha256:0", content: text("the start") } } },
    ]);
    expect(messagesOf(textMessage("user", "go"), call, results).slice(2)).toEqual([
      { role: "tool", tool_call_id: "a", content: "error: no such folder" },
      { role: "tool", tool_call_id: "b", content: "the start" },
    ]);
  });

  it("says that a result is empty or elsewhere, since no result may be without content", () => {
    const call = message("assistant", [
      { part: { case: "toolCall", value: { id: "a", tool: "t" } } },
      { part: { case: "toolCall", value: { id: "b", tool: "t" } } },
    ]);
    const results = message("tool", [
      { part: { case: "toolResult", value: { id: "a" } } },
      { part: { case: "toolResult", value: { id: "b", outputUri: "blob:7", outputDigest: "sha256:0" } } },
    ]);
    expect(messagesOf(textMessage("user", "go"), call, results).slice(2)).toEqual([
      { role: "tool", tool_call_id: "a", content: "(no output)" },
      { role: "tool", tool_call_id: "b", content: "[the output is too large for this request and was left out]" },
    ]);
  });

  it("leaves out another provider's reasoning, empty text, and messages of which nothing is left", () => {
    const reasoning = message("assistant", [
      { part: { case: "reasoning", value: { provider: "anthropic", opaque: { case: "opaqueBytes", value: bytes } } } },
      { part: { case: "text", value: { text: "" } } },
    ]);
    expect(
      messagesOf(textMessage("user", "hi"), reasoning, textMessage("user", ""), message("user", []), textMessage("user", "ho")),
    ).toEqual([
      { role: "user", content: "hi" },
      { role: "user", content: "ho" },
    ]);
  });

  it("says in words what stands where the protocol has no place for it", () => {
    const odd = message("user", [{ part: { case: "toolCall", value: { id: "a", tool: "t", args: { x: 1 } } } }]);
    expect(messagesOf(odd)).toEqual([{ role: "user", content: '[call of the tool "t" with {"x":1}]' }]);
  });

  describe("with tools", () => {
    const tools = [
      create(ToolDefinitionSchema, { name: "read", description: "Reads.", inputSchema: { type: "object", properties: { path: {} } } }),
      create(ToolDefinitionSchema, { name: "now" }),
    ];
    const choice = (mode: ToolChoiceMode, name = "") => create(ToolChoiceSchema, { mode, name });

    it("offers them in their order", () => {
      expect(bodyOf({ tools }).tools).toEqual([
        { type: "function", function: { name: "read", description: "Reads.", parameters: { type: "object", properties: { path: {} } } } },
        { type: "function", function: { name: "now", parameters: { type: "object", properties: {} } } },
      ]);
    });

    it.each([
      [ToolChoiceMode.UNSPECIFIED, "", undefined],
      [ToolChoiceMode.AUTO, "", "auto"],
      [ToolChoiceMode.NONE, "", "none"],
      [ToolChoiceMode.REQUIRED, "", "required"],
      [ToolChoiceMode.REQUIRED, "now", { type: "function", function: { name: "now" } }],
    ] as const)("keeps the choice of mode %i and name %j", (mode, name, expected) => {
      expect(bodyOf({ tools, toolChoice: choice(mode, name) }).tool_choice).toEqual(expected);
    });

    it("refuses a choice that cannot be kept", () => {
      expect(() => bodyOf({ toolChoice: choice(ToolChoiceMode.REQUIRED) })).toThrow("tool_choice: needs tools");
      expect(() => bodyOf({ tools, toolChoice: choice(ToolChoiceMode.REQUIRED, "gone") })).toThrow("tool_choice.name: must be the name");
      expect(() => bodyOf({ tools, toolChoice: choice(ToolChoiceMode.AUTO, "now") })).toThrow("tool_choice.name: goes with MODE_REQUIRED");
      expect(bodyOf({ toolChoice: choice(ToolChoiceMode.AUTO) })).not.toHaveProperty("tool_choice");
    });
  });

  it.each([
    ["model", { model: "" }],
    ["messages", { messages: [] }],
    ["messages", { messages: [textMessage("user", "")] }],
    ["messages[1].role", { messages: [textMessage("user", "a"), message("robot", [])] }],
    ["params.temperature", { params: { temperature: "hot" } }],
  ])("is refused with the field %s", (field, change) => {
    expect(() => bodyOf(change)).toThrow(expect.objectContaining({ code: "invalid_argument", field }));
  });
});
