import { describe, expect, it } from "vitest";
import { refusalOf } from "./model-rules.ts";
import { startModelServer, type ModelReply } from "./model-server.ts";
import { replyText } from "./model-answers.ts";
import { openAiText } from "./model-streams.ts";

const openAiBody = (change: Record<string, unknown>) => ({
  model: "m",
  stream: true,
  messages: [{ role: "user", content: "hi" }],
  ...change,
});
const anthropicBody = (change: Record<string, unknown>) => ({
  model: "m",
  stream: true,
  max_tokens: 5,
  messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  ...change,
});
const text = (value: string) => ({ type: "text", text: value });
const user = { role: "user", content: "go" };
const openAiCall = (id: string, args = "{}") => ({ id, type: "function", function: { name: "t", arguments: args } });
const use = (id: string) => ({ type: "tool_use", id, name: "t", input: {} });
const answer = (id: string) => ({ type: "tool_result", tool_use_id: id, content: [text("ok")] });
const tools = [{ name: "t", input_schema: { type: "object" } }];

describe("the rules for a chat completion request", () => {
  it("accept an ordinary request", () => {
    const messages = [
      { role: "system", content: "s" },
      user,
      { role: "assistant", content: null, tool_calls: [openAiCall("a"), openAiCall("b")] },
      { role: "tool", tool_call_id: "b", content: "1" },
      { role: "tool", tool_call_id: "a", content: "2" },
      { role: "user", content: [text("and")] },
    ];
    expect(refusalOf("openai", openAiBody({ messages }))).toBeUndefined();
  });

  it.each<[string, Record<string, unknown>]>([
    ["no messages", { messages: [] }],
    ["no model", { model: "" }],
    ["no stream", { stream: false }],
    ["a lone surrogate", { messages: [{ role: "user", content: "\ud800" }] }],
    ["an empty message", { messages: [{ role: "user", content: "" }] }],
    ["a role that it does not know", { messages: [{ role: "robot", content: "x" }] }],
    ["a call without a result at the end", { messages: [user, { role: "assistant", tool_calls: [openAiCall("a")] }] }],
    ["a call without a result", { messages: [user, { role: "assistant", tool_calls: [openAiCall("a")] }, user] }],
    ["a result without a call", { messages: [user, { role: "tool", tool_call_id: "a", content: "x" }] }],
    [
      "a result twice",
      {
        messages: [
          user,
          { role: "assistant", tool_calls: [openAiCall("a")] },
          ...[1, 2].map(() => ({ role: "tool", tool_call_id: "a", content: "x" })),
        ],
      },
    ],
    [
      "an empty result",
      { messages: [user, { role: "assistant", tool_calls: [openAiCall("a")] }, { role: "tool", tool_call_id: "a", content: "" }] },
    ],
    ["one id twice", { messages: [user, { role: "assistant", tool_calls: [openAiCall("a"), openAiCall("a")] }] }],
    ["arguments that are no JSON", { messages: [user, { role: "assistant", tool_calls: [openAiCall("a", "{")] }] }],
    ["a tool choice without tools", { tool_choice: "auto" }],
  ])("refuse %s", (_what, change) => {
    expect(refusalOf("openai", openAiBody(change))).toBeTypeOf("string");
  });
});

describe("the rules of chat servers that want reasoning back", () => {
  const loop = (more: object, callMore: object = {}) => [
    user,
    { role: "assistant", content: null, ...more, tool_calls: [{ ...openAiCall("a"), ...callMore }] },
    { role: "tool", tool_call_id: "a", content: "1" },
  ];
  const extra = { extra_content: { google: { thought_signature: "S" } } };

  it.each<[string, string, readonly object[]]>([
    ["a text", "deepseek-x", loop({ reasoning_content: "" })],
    ["a signature", "gemini-3-x", loop({}, extra)],
    ["none for a turn that is over", "gemini-3-x", [...loop({}), user]],
    ["none for a model that has none", "llama", loop({})],
  ])("accept %s", (_what, model, messages) => {
    expect(refusalOf("openai", openAiBody({ model, messages }))).toBeUndefined();
  });

  it.each<[string, string, readonly object[]]>([
    ["a call without the text", "deepseek-x", [...loop({}), user]],
    ["a call without the signature", "gemini-3-x", loop({})],
  ])("refuse %s", (_what, model, messages) => {
    expect(refusalOf("openai", openAiBody({ model, messages }))).toMatch(/must be passed back|is missing/);
  });
});

describe("the rules for an Anthropic request", () => {
  const go = { role: "user", content: [text("go")] };

  it("accept an ordinary request", () => {
    const thinking = { type: "thinking", thinking: "", signature: "S" };
    const messages = [
      go,
      { role: "assistant", content: [thinking, text("I look."), use("a"), use("b")] },
      { role: "user", content: [answer("b"), answer("a"), text("and")] },
    ];
    expect(refusalOf("anthropic", anthropicBody({ messages, tools, system: [text("s")] }))).toBeUndefined();
  });

  it.each<[string, Record<string, unknown>]>([
    ["no limit of tokens", { max_tokens: undefined }],
    ["an empty system", { system: [] }],
    ["a temperature", { temperature: 1 }],
    ["a first message of the assistant", { messages: [{ role: "assistant", content: [text("x")] }] }],
    ["a role that it does not know", { messages: [go, { role: "tool", content: [text("x")] }] }],
    ["an empty message", { messages: [{ role: "user", content: [] }] }],
    ["text without a visible character", { messages: [{ role: "user", content: [text(" \n")] }] }],
    ["a call without a result at the end", { tools, messages: [go, { role: "assistant", content: [use("a")] }] }],
    ["a call without a result", { tools, messages: [go, { role: "assistant", content: [use("a")] }, go] }],
    ["a result without a call", { tools, messages: [{ role: "user", content: [answer("a")] }] }],
    [
      "a result behind text",
      { tools, messages: [go, { role: "assistant", content: [use("a")] }, { role: "user", content: [text("x"), answer("a")] }] },
    ],
    ["a call of the user", { tools, messages: [{ role: "user", content: [use("a")] }] }],
    [
      "an id twice",
      {
        tools,
        messages: [
          go,
          ...[1, 2].flatMap(() => [
            { role: "assistant", content: [use("a")] },
            { role: "user", content: [answer("a")] },
          ]),
        ],
      },
    ],
    [
      "an id in other letters",
      { tools, messages: [go, { role: "assistant", content: [use("a.b")] }, { role: "user", content: [answer("a.b")] }] },
    ],
    ["tool blocks without tools", { messages: [go, { role: "assistant", content: [use("a")] }, { role: "user", content: [answer("a")] }] }],
    ["a tool choice without tools", { tool_choice: { type: "auto" } }],
    [
      "thinking behind text",
      { messages: [go, { role: "assistant", content: [text("x"), { type: "thinking", thinking: "", signature: "S" }] }, go] },
    ],
    ["thinking without a signature", { messages: [go, { role: "assistant", content: [{ type: "thinking", thinking: "x" }] }, go] }],
    ["a block that it does not know", { messages: [{ role: "user", content: [{ type: "video" }] }] }],
    ["an answer to be continued that ends in white space", { messages: [go, { role: "assistant", content: [text("So ")] }] }],
  ])("refuse %s", (_what, change) => {
    expect(refusalOf("anthropic", anthropicBody(change))).toBeTypeOf("string");
  });
});

describe("the rules for an Anthropic request with options", () => {
  const go = { role: "user", content: [text("go")] };
  const loop = [go, { role: "assistant", content: [use("a")] }, { role: "user", content: [answer("a")] }];
  const budget = { type: "enabled", budget_tokens: 1024 };
  const image = (source: unknown) => ({ messages: [{ role: "user", content: [{ type: "image", source }] }] });

  it.each<[string, Record<string, unknown>]>([
    ["a budget for thinking in a loop that began without it", { tools, messages: loop, thinking: budget }],
    ["a forced tool with a budget for thinking", { tools, tool_choice: { type: "any" }, thinking: budget }],
    ["a cache hint of another kind", { cache_control: { type: "for ever" } }],
    ["an image without data", image({ type: "base64", media_type: "image/png", data: "" })],
    ["an image at no address", image({ type: "url", url: "file:///x" })],
    ["an image without a source", image(undefined)],
    [
      "redacted thinking that is no base64",
      { messages: [go, { role: "assistant", content: [{ type: "redacted_thinking", data: "?" }] }, go] },
    ],
    ["a tool's name in other letters", { tools, messages: [go, { role: "assistant", content: [{ ...use("a"), name: "a.b" }] }, loop[2]] }],
  ])("refuse %s", (_what, change) => {
    expect(refusalOf("anthropic", anthropicBody(change))).toBeTypeOf("string");
  });

  it("accept a budget where the loop began with thinking", () => {
    const thinking = { type: "thinking", thinking: "", signature: "S" };
    const messages = [go, { role: "assistant", content: [thinking, use("a")] }, loop[2]];
    expect(refusalOf("anthropic", anthropicBody({ tools, messages, thinking: budget }))).toBeUndefined();
  });
});

describe("the rules for every request", () => {
  it("refuse a lone surrogate and a body that is too large", () => {
    expect(refusalOf("openai", openAiBody({ user: "\ud800" }))).toContain("Unicode");
    expect(refusalOf("google", { contents: [{ role: "user", parts: [{ text: "x".repeat(21 * 1024 * 1024) }] }] })).toContain("larger");
    expect(refusalOf("responses", null)).toContain("not an object");
  });
});

describe("the rules for a Responses request", () => {
  const said = { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] };
  const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "E" };
  const call = (id: string, more: object = {}) => ({ type: "function_call", call_id: id, name: "t", arguments: "{}", ...more });
  const output = (id: string) => ({ type: "function_call_output", call_id: id, output: "ok" });
  const marked = { type: "message", id: "msg_1", role: "assistant", phase: "commentary", content: [{ type: "output_text", text: "x" }] };
  const body = (input: unknown, change: object = {}) => ({ model: "m", stream: true, store: false, input, ...change });

  it("accept an ordinary request", () => {
    const input = [said, reasoning, marked, call("a"), call("b"), output("b"), output("a"), said];
    expect(refusalOf("responses", body(input))).toBeUndefined();
  });

  it.each<[string, unknown, object?]>([
    ["no input", []],
    ["an answer that is stored", [said], { store: true }],
    ["a tool choice without tools", [said], { tool_choice: "auto" }],
    ["an item that is none", ["go"]],
    ["an item of another kind", [{ type: "image" }]],
    ["a role that it does not know", [{ ...said, role: "tool" }]],
    ["an empty message", [{ ...said, content: [] }]],
    ["empty text", [{ ...said, content: [{ type: "input_text", text: "" }] }]],
    ["the assistant's text from a user", [{ ...said, content: [{ type: "output_text", text: "x" }] }]],
    ["an id of another kind", [{ ...marked, id: "rs_1" }]],
    ["a call without an output", [said, call("a")]],
    ["an output without a call", [said, output("a")]],
    ["a second output", [said, call("a"), output("a"), output("a")]],
    ["one id twice", [said, call("a"), call("a"), output("a")]],
    ["an id that is too long", [said, call("x".repeat(65)), output("x".repeat(65))]],
    ["a name in other letters", [said, call("a", { name: "a.b" }), output("a")]],
    ["arguments that are no JSON", [said, call("a", { arguments: "{" }), output("a")]],
    ["an empty output", [said, call("a"), { ...output("a"), output: "" }]],
    ["reasoning at the end", [said, reasoning]],
    ["reasoning before a user's message", [said, reasoning, said]],
    ["reasoning without its content", [said, { ...reasoning, encrypted_content: null }, marked]],
    ["reasoning without its id", [said, { ...reasoning, id: "x" }, marked]],
    ["reasoning with a status", [said, { ...reasoning, status: "completed" }, marked]],
  ])("refuse %s", (_what, input, change) => {
    expect(refusalOf("responses", body(input, change))).toBeTypeOf("string");
  });
});

describe("the rules for a Gemini request", () => {
  const said = { role: "user", parts: [{ text: "go" }] };
  const call = (id: string, more: object = {}) => ({ functionCall: { id, name: "t", args: {} }, ...more });
  const asked = {
    role: "model",
    parts: [{ text: "hm", thought: true, thoughtSignature: "AAAA" }, call("a", { thoughtSignature: "BBBB" }), call("b")],
  };
  const response = (id: string, name = "t") => ({ functionResponse: { id, name, response: { output: "ok" } } });
  const answered = { role: "user", parts: [response("a"), response("b"), { inlineData: { mimeType: "image/png", data: "AAAA" } }] };
  const signed = (id: string) => ({ role: "model", parts: [call(id, { thoughtSignature: "AAAA" })] });

  it("accept an ordinary request", () => {
    const contents = [said, asked, answered, { role: "model", parts: [{ text: "", thoughtSignature: "AAAA" }] }, said];
    expect(refusalOf("google", { contents, systemInstruction: { parts: [{ text: "s" }] } })).toBeUndefined();
  });

  it.each<[string, unknown, object?]>([
    ["no contents", []],
    ["an empty system instruction", [said], { systemInstruction: { parts: [] } }],
    ["a tool config without tools", [said], { toolConfig: {} }],
    ["an empty content", [{ role: "user", parts: [] }]],
    ["a role that it does not know", [{ ...said, role: "assistant" }]],
    ["a part without data", [{ role: "user", parts: [{}] }]],
    ["a part with two kinds of data", [{ role: "user", parts: [{ text: "a", inlineData: {} }] }]],
    ["empty text", [{ role: "user", parts: [{ text: "" }] }]],
    ["a signature that is no base64", [said, { role: "model", parts: [{ text: "a", thoughtSignature: "?" }] }, said]],
    ["a signature of the user", [{ role: "user", parts: [{ text: "a", thoughtSignature: "AAAA" }] }]],
    ["a first call without a signature", [said, { role: "model", parts: [call("a")] }, { role: "user", parts: [response("a")] }]],
    ["a call of the user", [{ role: "user", parts: [call("a")] }]],
    ["a call first", [asked, answered]],
    ["a call at the end", [said, asked]],
    ["a call without its response", [said, asked, { role: "user", parts: [response("a")] }]],
    ["a response without a call", [{ role: "user", parts: [response("a")] }]],
    ["a response of another id", [said, signed("a"), { role: "user", parts: [response("b")] }]],
    ["a response of another name", [said, signed("a"), { role: "user", parts: [response("a", "u")] }]],
    [
      "one id twice",
      [said, { role: "model", parts: [...signed("a").parts, call("a")] }, { role: "user", parts: [response("a"), response("a")] }],
    ],
    ["a model content after a model content with calls", [said, signed("a"), { role: "model", parts: [{ text: "x" }] }]],
    [
      "a name in other letters",
      [
        said,
        { role: "model", parts: [{ functionCall: { id: "a", name: "a b", args: {} }, thoughtSignature: "AAAA" }] },
        { role: "user", parts: [response("a", "a b")] },
      ],
    ],
    [
      "arguments that are no object",
      [
        said,
        { role: "model", parts: [{ functionCall: { id: "a", name: "t", args: [] }, thoughtSignature: "AAAA" }] },
        { role: "user", parts: [response("a")] },
      ],
    ],
  ])("refuse %s", (_what, contents, change = {}) => {
    expect(refusalOf("google", { contents, ...change })).toBeTypeOf("string");
  });
});

describe("the model server", () => {
  const post = (url: string, body: string, signal?: AbortSignal) =>
    fetch(url, { method: "POST", body, headers: { "content-type": "application/json" }, ...(signal === undefined ? {} : { signal }) });

  it("keeps every request byte for byte, answers by its script and then by itself", async () => {
    await using server = await startModelServer();
    server.script({ kind: "status", status: 503, headers: { "retry-after": "1" }, body: "busy" });
    const body = JSON.stringify(openAiBody({ extra: "ünïcode" }));
    const first = await post(`${server.openAiBaseUrl}/chat/completions`, body);
    expect([first.status, first.headers.get("retry-after"), await first.text()]).toEqual([503, "1", "busy"]);
    const second = await post(`${server.openAiBaseUrl}/chat/completions`, body);
    expect(await second.text()).toContain('"content":"re: hi"');
    expect(server.requests.map((request) => new TextDecoder().decode(request.body))).toEqual([body, body]);
    await expect(server.requests[1]?.ended).resolves.toBe("answered");
  });

  it("refuses what the real provider would refuse, and takes nothing from its script for it", async () => {
    await using server = await startModelServer();
    server.script(replyText("anthropic", "scripted"));
    const refused = await post(`${server.anthropicBaseUrl}/v1/messages`, JSON.stringify(anthropicBody({ messages: [] })));
    expect(refused.status).toBe(400);
    const accepted = await post(`${server.anthropicBaseUrl}/v1/messages`, JSON.stringify(anthropicBody({})));
    expect(await accepted.text()).toContain("scripted");
    expect(server.requests.map((request) => request.refusal === undefined)).toEqual([false, true]);
  });

  it.each<[string, ModelReply]>([
    ["without an answer", { kind: "cut" }],
    ["in the middle of a stream", { kind: "stream", steps: [...openAiText("a"), { kind: "cut" }] }],
  ])("cuts a connection %s", async (_where, reply) => {
    await using server = await startModelServer();
    server.script(reply);
    await expect(
      post(`${server.openAiBaseUrl}/chat/completions`, JSON.stringify(openAiBody({}))).then((answered) => answered.text()),
    ).rejects.toThrow();
    await expect((await server.request(0)).ended).resolves.toBe("cut");
  });

  it("sees a client go away", async () => {
    await using server = await startModelServer();
    server.script({ kind: "silence" });
    const controller = new AbortController();
    const call = post(`${server.openAiBaseUrl}/chat/completions`, JSON.stringify(openAiBody({})), controller.signal);
    const request = await server.request(0);
    controller.abort();
    await expect(call).rejects.toThrow();
    await expect(request.ended).resolves.toBe("client-closed");
  });

  it("knows no other path", async () => {
    await using server = await startModelServer();
    expect((await post(`${server.openAiBaseUrl}/completions`, "{}")).status).toBe(404);
    expect(server.requests).toHaveLength(0);
  });
});
