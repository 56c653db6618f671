/** Every error that a conversation can have, with a client that Python's grpcio-tools makes from the proto. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { flowsHome, PURE, tool } from "./support/agent-flows.ts";
import type { Value } from "./support/python-client.ts";
import { answer, nextError, PythonWorld, turn } from "./support/python-world.ts";

const world = PythonWorld.ofThisFile();
const look = tool("look", { category: PURE });

describe("what is wrong", () => {
  it("is no_session before there is one, whatever is asked; and one can be started then", async () => {
    const stream = world.open();
    const requests = [
      { userMessage: { content: "hi" } },
      { toolResult: { toolCallId: "c", success: true } },
      { cancelTurn: {} },
      { cancelSession: {} },
      { feedback: { messageId: "m", rating: "up" } },
      { permissionDecision: { toolCallId: "c", approved: true } },
      { registerTools: { tools: [look] } },
    ];
    for (const request of requests) stream.say(request);
    for (const request of requests) expect([request, await nextError(stream)]).toEqual([request, ["no_session", false]]);
    stream.say({ ping: {} });
    await stream.next("pong");
    stream.say({ start: {} });
    await stream.next("sessionStarted");
  });

  it("is already_started, turn_in_progress, unknown_tool_call and no_active_turn; and the conversation goes on", async () => {
    const stream = await world.started({ tools: [look] });
    stream.say({ start: {} });
    expect(await nextError(stream)).toEqual(["already_started", false]);
    for (const request of [{ cancelTurn: {} }, { toolResult: { toolCallId: "c", success: true } }]) {
      stream.say(request);
      expect(await nextError(stream)).toEqual(["no_active_turn", false]);
    }
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    const { toolCallId } = await stream.next("toolRequest");
    stream.say({ userMessage: { content: "And the window?" } });
    expect(await nextError(stream)).toEqual(["turn_in_progress", true]);
    for (const request of [
      { toolResult: { toolCallId: "another", success: true } },
      { permissionDecision: { toolCallId: "another", approved: true } },
    ]) {
      stream.say(request);
      expect(await nextError(stream)).toEqual(["unknown_tool_call", false]);
    }
    stream.say({ toolResult: { toolCallId, success: true, result: "ajar" } });
    await stream.next("turnComplete");
    expect(stream.story().at(-1)).toBe("complete m end_turn");
  });

  it("is unknown_tool_call for a result that comes after its time; the model was told meanwhile", async () => {
    const stream = await world.started({ tools: [tool("look", { category: PURE, timeoutMs: 50 })] });
    stream.say({ userMessage: { content: "Be asked in vain.", messageId: "m" } });
    const { toolCallId, timeoutMs } = await stream.next("toolRequest");
    expect(timeoutMs).toBe(50);
    await stream.next("activityUpdate", { state: "thinking" });
    stream.say({ toolResult: { toolCallId, success: true, result: "late" } });
    expect(await nextError(stream)).toEqual(["unknown_tool_call", false]);
    stream.say({ cancelTurn: {} });
    expect(await stream.next("turnComplete")).toMatchObject({ stopReason: "cancelled" });
  });

  it.each<[string, Value]>([
    ["content", { userMessage: {} }],
    ["ai_mode", { userMessage: { content: "hi", aiMode: "fast" } }],
    ["ai_mode", { userMessage: { content: "hi", aiMode: "ooda" } }],
    ["message_id", { userMessage: { content: "hi", messageId: "m".repeat(129) } }],
    ["tools[1].name", { userMessage: { content: "hi", tools: [look, look] } }],
    ["content", { userMessage: { content: "x".repeat(3 * 1024 * 1024 + 1) } }],
    ["context[0]", { userMessage: { content: "hi", context: [{}] } }],
    ["tools[0].name", { registerTools: { tools: [tool("a b")] } }],
    ["tools[0].parameters_schema", { registerTools: { tools: [tool("a", { parametersSchema: { type: 3 } })] } }],
    ["tool_call_id", { toolResult: {} }],
    ["tool_call_id", { permissionDecision: {} }],
    ["rating", { feedback: { messageId: "m" } }],
    ["session_id", { feedback: { sessionId: "another", messageId: "m", rating: "up" } }],
    ["request", {}],
  ])("is invalid_argument, by the name of the field: %s", async (field, request) => {
    const stream = await world.started();
    stream.say(request);
    const { code, message, retryable } = await stream.next("error");
    expect([code, retryable, String(message).split(": ")[0]]).toEqual(["invalid_argument", false, field]);
    expect(await turn(stream, { content: "Wipe it." })).toMatchObject({ stopReason: "end_turn" });
  });

  it.each<[string, Value]>([
    ["environment_id", { environmentId: "nowhere" }],
    ["host_id", { model: "unheard/of", environmentId: "provider", hostId: "nowhere" }],
    ["tools[0].name", { tools: [tool("")] }],
    ["history[0].role", { history: [{ role: "judge", parts: [{ text: { text: "hi" } }] }] }],
    ["max_context_tokens", { maxContextTokens: 1 }],
  ])("ends the stream where a session cannot be started: %s", async (field, start) => {
    const stream = world.open();
    stream.say({ start });
    const { code, message } = await stream.next("error");
    expect([code, String(message).split(": ")[0]]).toEqual(["invalid_argument", field]);
    expect(await stream.ended()).toMatchObject({ code: "OK" });
  });

  it("is model_error where the model fails, and agent_error where the agent does; a provider's words stay here", async () => {
    const stream = await world.started();
    await turn(stream, { content: "Break.", messageId: "m" });
    expect(stream.story()).toEqual(["started", "error model_error", "complete m error"]);
    expect(JSON.stringify(stream.heard)).not.toContain("secret of the provider");
    const brief = await world.started({ environmentId: "brief", tools: [look] });
    brief.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    await answer(brief, "ajar");
    await brief.next("turnComplete");
    expect(brief.story().slice(-2)).toEqual(["error agent_error", "complete m max_steps"]);
  });

  it("is unauthenticated without a token, which ends the stream", async () => {
    const server = await flowsHome().serve({ env: { HOLDFAST_TOKEN: "sesame" } });
    const stranger = world.python.open(server);
    expect(await nextError(stranger)).toEqual(["unauthenticated", false]);
    expect(await stranger.ended()).toMatchObject({ code: "UNAUTHENTICATED" });
    const friend = world.python.open(server, { authorization: "Bearer sesame" });
    friend.say({ start: {} });
    await friend.next("sessionStarted");
  });

  it("is internal where this server's files are damaged; nothing of them is told", async () => {
    const home = flowsHome();
    const server = await home.serve();
    const stream = world.python.open(server);
    stream.say({ start: {} });
    await stream.next("sessionStarted");
    await server.end("SIGTERM");
    const notes = new DatabaseSync(join(home.folder, "notes.sqlite"));
    notes.exec("UPDATE notes SET value = x'ff'");
    notes.close();
    const again = world.python.open(await home.serve(), { "holdfast-session": stream.session });
    const { code, message } = await again.next("error");
    expect([code, message]).toEqual(["internal", "session: the notes beside it cannot be read; restore the file from a copy"]);
    expect(await again.ended()).toMatchObject({ code: "OK" });
  });
});
