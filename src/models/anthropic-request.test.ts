import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MessageSchema, ToolChoiceSchema, ToolDefinitionSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { textMessage, ToolChoiceMode, type ModelRequest } from "../spi/index.ts";
import { refusalOf } from "../testing/model-rules.ts";
import { anthropicRequestBody } from "./anthropic-request.ts";

const OPTIONS = { modelPrefix: "anthropic/", maxTokensDefault: 500 } as const;
type Parts = NonNullable<Parameters<typeof create<typeof MessageSchema>>[1]>["parts"];
type PartInit = NonNullable<Parts>[number];
const message = (role: string, parts: Parts): Message => create(MessageSchema, { role, parts: parts ?? [] });
const bodyOf = (request: Partial<ModelRequest>) => {
  const body = anthropicRequestBody({ model: "claude-x", messages: [textMessage("user", "hi")], ...request }, OPTIONS);
  expect(refusalOf("anthropic", structuredClone(body))).toBeUndefined();
  return body;
};
const messagesOf = (...messages: Message[]) => bodyOf({ messages }).messages;
const bytes = Uint8Array.of(1, 2, 3);
const encode = (text: string) => new TextEncoder().encode(text);
const text = (value: string) => ({ type: "text", text: value });
const textPart = (value: string): PartInit => ({ part: { case: "text", value: { text: value } } });
const call = (id: string): PartInit => ({ part: { case: "toolCall", value: { id, tool: "read", args: { path: "x" } } } });
const result = (id: string): PartInit => ({ part: { case: "toolResult", value: { id, output: { ok: true } } } });
const thought = (json: string, provider = "anthropic"): PartInit => ({
  part: { case: "reasoning", value: { provider, opaque: { case: "opaqueBytes", value: encode(json) } } },
});

describe("an Anthropic request", () => {
  it("is a stream with a limit of tokens, and system messages before the conversation stand at its top", () => {
    const messages = [textMessage("system", "be brief"), textMessage("system", "and kind"), textMessage("user", "hi")];
    expect(bodyOf({ model: "anthropic/claude-x", messages })).toEqual({
      model: "claude-x",
      max_tokens: 500,
      cache_control: { type: "ephemeral" },
      system: [text("be brief"), text("and kind")],
      messages: [{ role: "user", content: [text("hi")] }],
      stream: true,
    });
  });

  it("has a later system message at its place, behind the results that a call wants first", () => {
    const said = [
      textMessage("user", "go"),
      message("assistant", [call("a")]),
      message("tool", [result("a")]),
      textMessage("system", "mind the cat"),
      textMessage("system", "  "),
      textMessage("user", "on"),
    ];
    const { system, messages } = bodyOf({ messages: said });
    expect(system).toBeUndefined();
    expect(messages.at(-1)).toMatchObject({
      role: "user",
      content: [{ type: "tool_result" }, text("[The system says:]\nmind the cat"), text("on")],
    });
    expect(messages).toHaveLength(3);
  });

  it("makes one message of those in a row that speak for one side", () => {
    const said = [textMessage("user", "a"), textMessage("user", "b"), textMessage("assistant", "c"), textMessage("assistant", "d")];
    expect(messagesOf(...said)).toEqual([
      { role: "user", content: [text("a"), text("b")] },
      { role: "assistant", content: [text("c"), text("d")] },
    ]);
  });

  it("puts tool results first in the message that answers the calls", () => {
    const sent = messagesOf(
      textMessage("user", "go"),
      message("assistant", [textPart("I look."), call("a"), call("b")]),
      message("user", [textPart("also this"), result("b")]),
      message("tool", [result("a")]),
    );
    expect(sent.slice(1)).toEqual([
      {
        role: "assistant",
        content: [
          text("I look."),
          { type: "tool_use", id: "a", name: "read", input: { path: "x" } },
          { type: "tool_use", id: "b", name: "read", input: { path: "x" } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "b", content: [text('{"ok":true}')] },
          { type: "tool_result", tool_use_id: "a", content: [text('{"ok":true}')] },
          text("also this"),
        ],
      },
    ]);
  });

  it("names the tools of former calls where it offers none, since their blocks are refused otherwise", () => {
    const messages = [textMessage("user", "go"), message("assistant", [call("a")]), message("tool", [result("a")])];
    expect(bodyOf({ messages })).toMatchObject({
      tools: [{ name: "read", input_schema: { type: "object" } }],
      tool_choice: { type: "none" },
    });
  });

  it("keeps ids of other providers apart in the letters that this one takes", () => {
    const sent = messagesOf(
      textMessage("user", "go"),
      message("assistant", [call("functions.read:0"), call("functions:read.0")]),
      message("tool", [result("functions.read:0"), result("functions:read.0")]),
    );
    const ids = JSON.stringify(sent)
      .match(/"(?:id|tool_use_id)":"[^"]*"/g)
      ?.map((match) => match.split('"')[3]);
    expect(ids?.slice(0, 2)).toEqual(ids?.slice(2));
    expect(new Set(ids).size).toBe(2);
  });

  it("keeps calls apart that were given the same id", () => {
    const sent = messagesOf(
      textMessage("user", "go"),
      message("assistant", [call("c"), call("c")]),
      message("tool", [result("c"), result("c")]),
      message("assistant", [call("c")]),
      message("tool", [result("c")]),
    );
    const ids = JSON.stringify(sent)
      .match(/"(?:id|tool_use_id)":"[^"]*"/g)
      ?.map((match) => match.split('"')[3]);
    expect(ids).toEqual(["c", "c_2", "c", "c_2", "c_3", "c_3"]);
  });

  describe("with reasoning (I2)", () => {
    const signed = '{"type":"thinking","thinking":"hm 😀 \\"so\\"","signature":"EqQBCkgIAR+/=="}';

    it("hands thinking back byte for byte, in its place", () => {
      const sent = messagesOf(
        textMessage("user", "go"),
        message("assistant", [
          thought(signed),
          textPart("first"),
          thought('{"type":"redacted_thinking","data":"AAA="}'),
          textPart("second"),
        ]),
        textMessage("user", "on"),
      );
      expect(JSON.stringify(sent[1])).toBe(
        `{"role":"assistant","content":[${signed},{"type":"text","text":"first"},{"type":"redacted_thinking","data":"AAA="},{"type":"text","text":"second"}]}`,
      );
    });

    it("leaves out the reasoning of other providers, bytes that are no block of this one, and what it would refuse", () => {
      const sent = messagesOf(
        textMessage("user", "go"),
        message("assistant", [
          thought(signed, "openai"),
          thought("\u0001"),
          thought('{"type":"thinking"}'),
          thought('{"type":"thinking","thinking":"\\ud83d","signature":"x"}'),
          textPart("said"),
        ]),
        textMessage("user", "on"),
      );
      expect(sent[1]).toEqual({ role: "assistant", content: [text("said")] });
    });

    it("refuses to go on without reasoning that lies elsewhere", () => {
      const elsewhere = message("assistant", [
        { part: { case: "reasoning", value: { provider: "anthropic", opaque: { case: "opaqueUri", value: "blob:1" } } } },
      ]);
      expect(() => messagesOf(textMessage("user", "go"), elsewhere)).toThrow(expect.objectContaining({ code: "failed_precondition" }));
    });

    it("puts a short user message before thinking that would stand behind other words", () => {
      const sent = messagesOf(
        textMessage("user", "go"),
        textMessage("assistant", "50 %"),
        message("assistant", [thought(signed), textPart("done")]),
      );
      expect(sent.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    });
  });

  it("begins with the user, and ends no answer to be continued with white space", () => {
    expect(messagesOf(textMessage("assistant", "Welcome."), textMessage("user", "hi"), textMessage("assistant", "So: "))).toEqual([
      { role: "user", content: [text("(The conversation begins with the assistant.)")] },
      { role: "assistant", content: [text("Welcome.")] },
      { role: "user", content: [text("hi")] },
      { role: "assistant", content: [text("So:")] },
    ]);
  });

  it("leaves out text without a visible character, and messages of which nothing is left", () => {
    const said = [textMessage("user", "hi"), textMessage("assistant", " \n"), message("assistant", []), textMessage("user", "ho")];
    expect(messagesOf(...said)).toEqual([{ role: "user", content: [text("hi"), text("ho")] }]);
  });

  it("holds files as the protocol has them, and others in words", () => {
    const file = (mime: string, source: { case: "bytes"; value: Uint8Array } | { case: "uri"; value: string }, name = ""): PartInit => ({
      part: { case: "file", value: { mime, name, source } },
    });
    const [user] = messagesOf(
      message("user", [
        file("image/png", { case: "bytes", value: bytes }),
        file("image/png", { case: "uri", value: "https://host/a.png" }),
        file("application/pdf", { case: "bytes", value: bytes }),
        file("application/pdf", { case: "uri", value: "https://host/a.pdf" }),
        file("text/plain", { case: "bytes", value: encode("notes") }),
        file("image/tiff", { case: "bytes", value: bytes }, "scan.tiff"),
        file("image/png", { case: "uri", value: "file:///srv/secret.png" }),
      ]),
    );
    expect(user?.content).toEqual([
      { type: "image", source: { type: "base64", media_type: "image/png", data: "AQID" } },
      { type: "image", source: { type: "url", url: "https://host/a.png" } },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "AQID" } },
      { type: "document", source: { type: "url", url: "https://host/a.pdf" } },
      text("notes"),
      text('[file "scan.tiff", image/tiff; its content is not part of this request]'),
      text("[file image/png; its content is not part of this request]"),
    ]);
  });

  it("marks a failed result, and keeps its files inside", () => {
    const failed: PartInit = {
      part: {
        case: "toolResult",
        value: {
          id: "a",
          isError: true,
          content: [{ part: { case: "file", value: { mime: "image/png", source: { case: "bytes", value: bytes } } } }],
        },
      },
    };
    const sent = messagesOf(textMessage("user", "go"), message("assistant", [call("a")]), message("tool", [failed]));
    expect(sent[2]?.content).toEqual([
      {
        type: "tool_result",
        tool_use_id: "a",
        is_error: true,
        content: [text("error: the tool failed"), { type: "image", source: { type: "base64", media_type: "image/png", data: "AQID" } }],
      },
    ]);
  });

  it.each([
    [ToolChoiceMode.UNSPECIFIED, "", undefined],
    [ToolChoiceMode.AUTO, "", { type: "auto" }],
    [ToolChoiceMode.NONE, "", { type: "none" }],
    [ToolChoiceMode.REQUIRED, "", { type: "any" }],
    [ToolChoiceMode.REQUIRED, "now", { type: "tool", name: "now" }],
  ] as const)("keeps the tool choice of mode %i and name %j", (mode, name, expected) => {
    const tools = [create(ToolDefinitionSchema, { name: "now", description: "The time.", inputSchema: { properties: {} } })];
    const body = bodyOf({ tools, toolChoice: create(ToolChoiceSchema, { mode, name }) });
    expect(body.tools).toEqual([{ name: "now", description: "The time.", input_schema: { type: "object", properties: {} } }]);
    expect(body.tool_choice).toEqual(expected);
  });

  describe("with options", () => {
    const tools = [create(ToolDefinitionSchema, { name: "read" })];
    const loop = [textMessage("user", "go"), message("assistant", [call("a")]), message("tool", [result("a")])];
    const signed = '{"type":"thinking","thinking":"","signature":"S"}';

    it("asks for one call at most", () => {
      const params = { parallel_tool_calls: "false" };
      expect(bodyOf({ tools, params }).tool_choice).toEqual({ type: "auto", disable_parallel_tool_use: true });
      const toolChoice = create(ToolChoiceSchema, { mode: ToolChoiceMode.REQUIRED });
      expect(bodyOf({ tools, params, toolChoice }).tool_choice).toEqual({ type: "any", disable_parallel_tool_use: true });
      expect(bodyOf({ params }).tool_choice).toBeUndefined();
    });

    it("hints at its cache in one place that does not move", () => {
      expect(bodyOf({ params: { cache: "1h" } }).cache_control).toEqual({ type: "ephemeral", ttl: "1h" });
      expect(bodyOf({ params: { cache: "off" } })).not.toHaveProperty("cache_control");
    });

    it("has no thinking budget in a tool loop that began without thinking, as another model's", () => {
      const params = { thinking_budget_tokens: "1024" };
      expect(bodyOf({ tools, params, messages: loop })).not.toHaveProperty("thinking");
      const thinks = [loop[0]!, message("assistant", [thought(signed), call("a")]), loop[2]!];
      expect(bodyOf({ tools, params, messages: thinks }).thinking).toEqual({ type: "enabled", budget_tokens: 1024 });
      expect(bodyOf({ tools, params, messages: [...loop, message("assistant", [textPart("ok")]), loop[0]!] }).thinking).toBeDefined();
    });

    it("refuses a tool that is forced with a thinking budget", () => {
      const toolChoice = create(ToolChoiceSchema, { mode: ToolChoiceMode.REQUIRED });
      expect(() => bodyOf({ tools, toolChoice, params: { thinking_budget_tokens: "1024" } })).toThrow(
        expect.objectContaining({ code: "invalid_argument", field: "tool_choice" }),
      );
    });

    it("says what becomes of thinking whose conversation was changed", () => {
      const binding = { prefix_mismatch_behavior: "drop_block" };
      expect(bodyOf({ params: { thinking_prefix_mismatch: "drop_block" } }).thinking).toEqual({ type: "adaptive", block_binding: binding });
      const params = { thinking_prefix_mismatch: "drop_block", thinking_budget_tokens: "1024" };
      expect(bodyOf({ params }).thinking).toEqual({ type: "enabled", budget_tokens: 1024, block_binding: binding });
    });
  });

  it.each([
    ["messages", { messages: [] }],
    ["messages", { messages: [textMessage("system", "only rules")] }],
    ["messages[0].role", { messages: [message("robot", [])] }],
    ["params.temperature", { params: { temperature: "1" } }],
  ])("is refused with the field %s", (field, change) => {
    expect(() => bodyOf(change)).toThrow(expect.objectContaining({ code: "invalid_argument", field }));
  });
});
