import { describe, expect, it } from "vitest";
import { refusalOf } from "./model-rules.ts";
import { startModelServer, type ModelReply } from "./model-server.ts";
import { openAiText, replyText } from "./model-streams.ts";

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
