/** The flows of the source document, message by message, with a client that Python's grpcio-tools makes from the proto. */

import { describe, expect, it } from "vitest";
import type { ModelReply } from "../src/testing/model-server.ts";
import { openAiChunk, openAiEnd, openAiText } from "../src/testing/model-streams.ts";
import { PURE, tool } from "./support/agent-flows.ts";
import type { Value } from "./support/python-client.ts";
import { PythonWorld, turn } from "./support/python-world.ts";

const world = PythonWorld.ofThisFile();
const look = tool("look", { category: PURE });

/** What the provider was asked with last. */
function lastRequest(): { readonly messages: readonly Value[]; readonly tools: readonly string[] } {
  const { messages, tools = [] } = world.provider.requests.at(-1)!.json as {
    readonly messages: readonly Value[];
    readonly tools?: readonly { readonly function: { readonly name: string } }[];
  };
  return { messages, tools: tools.map((each) => each.function.name) };
}

const answers = (text: string): ModelReply => ({ kind: "stream", steps: [...openAiText(text), ...openAiEnd()] });
const calls = (name: string, args: Value): ModelReply => ({
  kind: "stream",
  steps: [
    openAiChunk({ role: "assistant", content: "" }),
    openAiChunk({ tool_calls: [{ index: 0, id: "call-a", type: "function", function: { name, arguments: JSON.stringify(args) } }] }),
    ...openAiEnd("tool_calls"),
  ],
});

describe("the flow of the document", () => {
  it("starts, thinks, speaks, has a tool run, speaks and completes", async () => {
    const stream = world.open();
    stream.say({ start: { tools: [look] } });
    const { sessionId, model, permissions } = await stream.next("sessionStarted");
    expect(sessionId).toMatch(/^[0-9a-f-]{36}$/);
    expect(model).toMatch(/^script:/);
    expect(permissions).toEqual([
      { toolPattern: "*", policy: "allow", category: "pure", reason: "it only reads or computes" },
      { toolPattern: "*", policy: "require_confirmation", category: "physical", reason: "it acts on the world" },
    ]);
    expect(stream.headers).toMatchObject({ "holdfast-session": sessionId, "holdfast-seq": "0" });
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m-1" } });
    const request = await stream.next("toolRequest");
    const { toolCallId } = request;
    expect(request).toEqual({ toolCallId, toolName: "look", parameters: { at: "door" }, timeoutMs: 120_000 });
    stream.say({ toolResult: { toolCallId, success: true, result: "ajar", exitCode: 0, durationMs: "12" } });
    expect(await stream.next("turnComplete")).toEqual({
      messageId: "m-1",
      usage: { inputTokens: 50, outputTokens: 15, cacheReadTokens: 0, cacheCreationTokens: 0 },
      stopReason: "end_turn",
    });
    await stream.next("activityUpdate", { state: "idle" });
    expect(stream.story()).toEqual([
      "started",
      "thinking m-1: Somebody has to look.",
      "text m-1: Let me look.",
      'request look {"at":"door"}',
      "text m-1: It is ajar.",
      "complete m-1 end_turn",
    ]);
    expect(stream.all("activityUpdate").map(({ state, detail }) => [state, detail])).toEqual([
      ["thinking", ""],
      ["calling_tool", "look"],
      ["thinking", ""],
      ["idle", ""],
    ]);
    stream.say({ cancelSession: { reason: "done" } });
    expect(await stream.ended()).toMatchObject({ code: "OK" });
  });

  it("speaks in the pieces in which the model does", async () => {
    const stream = await world.started();
    await turn(stream, { content: "Tell a story.", messageId: "m" });
    expect(stream.all("textDelta").length).toBeGreaterThan(1);
    expect(stream.story()).toEqual(["started", "text m: Once upon a time.", "complete m end_turn"]);
  });

  it("makes an id for a message that has none, the same on all of its responses", async () => {
    const stream = await world.started();
    const { messageId } = await turn(stream, { content: "Tell a story." });
    expect(messageId).toMatch(/^[0-9a-f-]{36}$/);
    expect(stream.story()).toEqual(["started", `text ${String(messageId)}: Once upon a time.`, `complete ${String(messageId)} end_turn`]);
  });

  it("answers a ping before there is a session, and during a turn", async () => {
    const stream = world.open();
    stream.say({ ping: {} });
    await stream.next("pong");
    stream.say({ start: { tools: [look] } });
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    await stream.next("toolRequest");
    stream.say({ ping: {} });
    await stream.next("pong");
    expect(stream.story().slice(0, 2)).toEqual(["pong", "started"]);
    stream.cut();
  });

  it("keeps feedback", async () => {
    const stream = await world.started();
    await turn(stream, { content: "Tell a story.", messageId: "m" });
    stream.say({ feedback: { sessionId: stream.session, messageId: "m", rating: "up" } });
    stream.say({ feedback: { sessionId: stream.session, messageId: "m", rating: "sideways" } });
    expect(await stream.next("error")).toMatchObject({ code: "invalid_argument", message: "rating: must be up or down" });
    expect(stream.all("error")).toHaveLength(1);
  });

  it("goes on with a conversation that the client brings", async () => {
    const history = [
      { role: "user", parts: [{ text: { text: "I am Ada." } }] },
      {
        role: "assistant",
        parts: [{ text: { text: "Hello Ada." } }, { toolUse: { id: "t1", name: "look", input: { at: "door" } } }],
      },
      { role: "user", parts: [{ toolResult: { toolUseId: "t1", name: "look", content: "shut" } }] },
    ];
    const stream = await world.started({ environmentId: "provider", history, projectContext: ["Be brief."], maxContextTokens: 5_000 });
    world.provider.script(answers("You are Ada."));
    const context = [{ text: "Since Monday.", label: "when" }];
    await turn(stream, { content: "Who am I?", messageId: "m", context, systemContext: "It is Tuesday." });
    expect(stream.story()).toEqual(["started", "text m: You are Ada.", "complete m end_turn"]);
    const { messages } = lastRequest();
    expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "system", "user"]);
    expect(JSON.stringify(messages[0])).toContain("Be brief.");
    expect(JSON.stringify(messages[3])).toContain("shut");
    expect(JSON.stringify(messages[4])).toContain("It is Tuesday.");
    expect(JSON.stringify(messages[5])).toContain("[when]\\nSince Monday.");
  });
});

describe("tools of the client", () => {
  it("runs calls of one message at once, and takes their results in any order", async () => {
    const stream = await world.started({ tools: [look] });
    stream.say({ userMessage: { content: "Look twice.", messageId: "m" } });
    const [first, second] = [await stream.next("toolRequest"), await stream.next("toolRequest")];
    for (const { toolCallId } of [second, first]) stream.say({ toolResult: { toolCallId, success: true, result: "shut" } });
    await stream.next("turnComplete");
    expect(stream.story()).toEqual([
      "started",
      'request look {"at":"door"}',
      'request look {"at":"window"}',
      "text m: Both are shut.",
      "complete m end_turn",
    ]);
  });

  it("tells the model how a tool went: its exit code, its time, what was cut", async () => {
    const stream = await world.started({ environmentId: "provider", tools: [look] });
    world.provider.script(calls("look", { at: "door" }), answers("It failed."));
    stream.say({ userMessage: { content: "go", messageId: "m" } });
    const { toolCallId } = await stream.next("toolRequest");
    expect(toolCallId).toBe("call-a");
    stream.say({ toolResult: { toolCallId, success: false, result: "no door", exitCode: 3, truncated: true, durationMs: "41" } });
    await stream.next("turnComplete");
    expect(lastRequest().messages.at(-1)).toMatchObject({ role: "tool", tool_call_id: "call-a" });
    const told = JSON.stringify(lastRequest().messages.at(-1));
    for (const word of ["no door", "exit code 3"]) expect(told).toContain(word);
    const records = await (await fetch(`${world.server.url}/v1/sessions/${stream.session}/records`)).text();
    for (const word of ['"exit_code":3', '"truncated":true', '"duration_ms":41']) expect(records).toContain(word);
  });

  it("registers, replaces and removes the tools of a source", async () => {
    const stream = await world.started({ environmentId: "provider", tools: [look] });
    const offered = async (register?: Value): Promise<readonly string[]> => {
      if (register !== undefined) stream.say({ registerTools: register });
      world.provider.script(answers("yes"));
      await turn(stream, { content: "hi" });
      return lastRequest().tools;
    };
    const sim = (...names: readonly string[]): Value => ({
      source: "sim",
      tools: names.map((name) => tool(`sim__${name}`, { category: PURE })),
    });
    expect(await offered()).toEqual(["look"]);
    expect(await offered(sim("step", "reset"))).toEqual(["look", "sim__step", "sim__reset"]);
    expect(await offered(sim("step", "state"))).toEqual(["look", "sim__step", "sim__state"]);
    expect(await offered({ source: "other", tools: [] })).toEqual(["look", "sim__step", "sim__state"]);
    expect(await offered(sim())).toEqual(["look"]);
    expect(await offered({ tools: [tool("peek", { category: PURE })] })).toEqual(["look", "peek"]);
    expect(stream.all("error")).toEqual([]);
  });

  it("asks for a tool once it is there, and not when it is gone", async () => {
    const stream = await world.started();
    stream.say({ registerTools: { source: "sim", tools: [tool("sim__step", { category: PURE })] } });
    stream.say({ userMessage: { content: "Use the simulator.", messageId: "m-1" } });
    const { toolCallId } = await stream.next("toolRequest");
    stream.say({ toolResult: { toolCallId, success: true, result: "stepped" } });
    await stream.next("turnComplete");
    stream.say({ registerTools: { source: "sim" } });
    await turn(stream, { content: "Use the simulator.", messageId: "m-2" });
    expect(stream.story()).toEqual([
      "started",
      "request sim__step {}",
      "text m-1: It stepped.",
      "complete m-1 end_turn",
      "text m-2: There is none.",
      "complete m-2 end_turn",
    ]);
  });

  it("uses the guidance of a source once, on the next turn; that of a message goes before it", async () => {
    const stream = await world.started({ environmentId: "provider" });
    const systems = async (message: Value): Promise<string> => {
      world.provider.script(answers("yes"));
      await turn(stream, message);
      const { messages } = lastRequest();
      return JSON.stringify(messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1));
    };
    stream.say({ registerTools: { source: "sim", systemContext: "Step slowly." } });
    expect(await systems({ content: "one" })).toContain("Step slowly.");
    expect(await systems({ content: "two" })).not.toContain("Step slowly.");
    stream.say({ registerTools: { source: "sim", systemContext: "Step fast." } });
    const third = await systems({ content: "three", systemContext: "Do not step." });
    expect(third).toContain("Do not step.");
    expect(third).not.toContain("Step fast.");
  });

  it("takes the tools of a message for its turn alone, in place of all others", async () => {
    const stream = await world.started({ environmentId: "provider", tools: [look] });
    world.provider.script(answers("one"), answers("two"));
    await turn(stream, { content: "hi", tools: [tool("peek", { category: PURE })] });
    expect(lastRequest().tools).toEqual(["peek"]);
    await turn(stream, { content: "hi" });
    expect(lastRequest().tools).toEqual(["look"]);
  });
});

describe("ending", () => {
  it("cancels a turn, which is no error, and goes on", async () => {
    const stream = await world.started();
    stream.say({ userMessage: { content: "Think for long.", messageId: "m-1" } });
    await stream.next("activityUpdate", { state: "thinking" });
    stream.say({ cancelTurn: { reason: "enough" } });
    expect(await stream.next("turnComplete")).toMatchObject({ messageId: "m-1", stopReason: "cancelled" });
    await turn(stream, { content: "Tell a story.", messageId: "m-2" });
    expect(stream.story()).toEqual(["started", "complete m-1 cancelled", "text m-2: Once upon a time.", "complete m-2 end_turn"]);
  });

  it("cancels a session in the middle of a turn", async () => {
    const stream = await world.started();
    stream.say({ userMessage: { content: "Think for long.", messageId: "m" } });
    await stream.next("activityUpdate", { state: "thinking" });
    stream.say({ cancelSession: { reason: "enough" } });
    expect(await stream.ended()).toMatchObject({ code: "OK" });
    expect(stream.story()).toEqual(["started", "complete m cancelled"]);
  });
});
