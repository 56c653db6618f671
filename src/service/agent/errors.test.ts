import { describe, expect, it } from "vitest";
import { doorWorld, environmentWith, pureTool, scriptedModel } from "../../../e2e/support/door.ts";
import { HoldfastError, newSessionUid, sessionUidOf } from "../../base/index.ts";
import { HarnessFailure } from "../../spi/index.ts";
import { createAgentHarness, createHistoryHarness } from "../../harnesses/index.ts";
import { sayingModel } from "../../testing/agent-world.ts";
import type { DoorClient, Saying } from "../../testing/door-client.ts";
import { emptySeed, silent, testHarness, TestModel, textResponse } from "../../testing/host.ts";

/** The error that a request is answered with. */
async function refusal(client: DoorClient, request: Saying): Promise<{ code: string; message: string; retryable: boolean }> {
  client.say(request);
  const { code, message, retryable } = await client.next("error");
  return { code, message, retryable };
}

/** A stream of a new session. */
async function started(host: { client(): DoorClient }, tools: readonly ReturnType<typeof pureTool>[] = []): Promise<DoorClient> {
  const client = host.client();
  client.say({ case: "start", value: { tools: [...tools] } });
  await client.next("sessionStarted");
  return client;
}

const say = (content: string, more = {}): Saying => ({ case: "userMessage", value: { content, ...more } });
const BEFORE_START: readonly Saying[] = [
  say("hi"),
  { case: "toolResult", value: { toolCallId: "c" } },
  { case: "cancelTurn", value: {} },
  { case: "cancelSession", value: {} },
  { case: "feedback", value: {} },
  { case: "permissionDecision", value: { toolCallId: "c" } },
  { case: "registerTools", value: {} },
];

describe("what goes wrong in a conversation", () => {
  it.each(BEFORE_START)("is no_session for $case before there is a session; the stream goes on", async (request) => {
    await using at = await doorWorld();
    await using host = at.host();
    const client = host.client();
    expect(await refusal(client, request)).toEqual({ code: "no_session", message: "session: start one first", retryable: false });
    client.say({ case: "start", value: {} });
    await client.next("sessionStarted");
  });

  it("is already_started for a second StartSession, and the session goes on", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel({ text: "yes" }) });
    await using host = at.host();
    const client = await started(host);
    expect(await refusal(client, { case: "start", value: {} })).toMatchObject({ code: "already_started" });
    client.say(say("there?"));
    await client.next("turnComplete");
    const again = host.client({ session: client.session });
    expect(await refusal(again, { case: "start", value: {} })).toMatchObject({ code: "already_started" });
  });

  it("is turn_in_progress for a message while a turn runs, and while it waits for an answer", async () => {
    await using at = await doorWorld("memory", {
      models: scriptedModel({ calls: [["look", "c1", {}]] }),
      environments: [environmentWith({ permissions: [{ tool: "*", policy: "require_confirmation" }] })],
    });
    await using host = at.host();
    const client = await started(host, [pureTool("look")]);
    client.say(say("go", { messageId: "m1" }));
    expect(await refusal(client, say("and?"))).toMatchObject({ code: "turn_in_progress", retryable: true });
    await client.next("activityUpdate", ({ state }) => state === "waiting_approval");
    await host.host.controller.running(sessionUidOf(client.session))?.outcome;
    expect(await refusal(client, say("and?"))).toMatchObject({ code: "turn_in_progress", retryable: true });
    client.say({ case: "cancelTurn", value: {} });
    expect(await client.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "cancelled" });
  });

  it("is no_active_turn for a result, and for a cancel, that no turn is there for", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel({ text: "yes" }) });
    await using host = at.host();
    const client = await started(host);
    const result: Saying = { case: "toolResult", value: { toolCallId: "c1", success: true, result: "late" } };
    expect(await refusal(client, result)).toMatchObject({ code: "no_active_turn" });
    expect(await refusal(client, { case: "cancelTurn", value: {} })).toMatchObject({ code: "no_active_turn" });
    client.say(say("hi"));
    await client.next("turnComplete");
    expect(await refusal(client, result)).toMatchObject({ code: "no_active_turn" });
  });

  it("is unknown_tool_call for ids that nobody waits for", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel({ calls: [["look", "c1", {}]] }) });
    await using host = at.host();
    const client = await started(host, [pureTool("look")]);
    client.say(say("go"));
    await client.next("toolRequest");
    expect(await refusal(client, { case: "toolResult", value: { toolCallId: "c9", success: true } })).toMatchObject({
      code: "unknown_tool_call",
    });
    const decision: Saying = { case: "permissionDecision", value: { toolCallId: "c1", approved: true } };
    expect(await refusal(client, decision)).toMatchObject({ code: "unknown_tool_call" });
    client.say({ case: "toolResult", value: { toolCallId: "c1", success: true } });
    await client.next("turnComplete");
  });

  it("is invalid_argument for what is no request; the stream goes on", async () => {
    await using at = await doorWorld();
    await using host = at.host();
    const client = host.client();
    client.garble();
    expect(await client.next("error")).toMatchObject({ code: "invalid_argument", message: "request: is cut off, or is no protobuf" });
    client.sayEmpty();
    expect(await client.next("error")).toMatchObject({
      code: "invalid_argument",
      message: "request: must have one of the requests of a session",
    });
    client.say({ case: "ping", value: {} });
    await client.next("pong");
  });

  it.each<readonly [field: string, request: Saying]>([
    ["content", say("")],
    ["ai_mode", say("hi", { aiMode: "yolo" })],
    ["ai_mode", say("hi", { aiMode: "ooda_re_act" })],
    ["message_id", say("hi", { messageId: "a\nb" })],
    ["context[0]", say("hi", { context: [{}] })],
    ["context[0].label", say("hi", { context: [{ block: { case: "text", value: "x" }, label: "\u0000" }] })],
    ["tools[0].name", say("hi", { tools: [{ name: "a b" }] })],
    ["tools[1].name", say("hi", { tools: [{ name: "a" }, { name: "a" }] })],
    ["tools[0].parameters_schema", say("hi", { tools: [{ name: "a", parametersSchema: { type: 7 } }] })],
    ["tools[0].name", { case: "registerTools", value: { tools: [{ name: "" }] } }],
    ["source", { case: "registerTools", value: { source: "\u0007" } }],
    ["tool_call_id", { case: "toolResult", value: {} }],
    ["duration_ms", { case: "toolResult", value: { toolCallId: "c", durationMs: -1n } }],
    ["tool_call_id", { case: "permissionDecision", value: {} }],
    ["session_id", { case: "feedback", value: { sessionId: "another", messageId: "m", rating: "up" } }],
    ["message_id", { case: "feedback", value: { rating: "up" } }],
    ["rating", { case: "feedback", value: { messageId: "m", rating: "meh" } }],
    ["reason", { case: "cancelTurn", value: { reason: "x".repeat(4_097) } }],
    ["reason", { case: "cancelSession", value: { reason: "x".repeat(4_097) } }],
  ])("is invalid_argument that names %s, has no effect, and the session goes on", async (field, request) => {
    await using at = await doorWorld("memory", { models: scriptedModel({ text: "yes" }) });
    await using host = at.host();
    const client = await started(host);
    const { code, message } = await refusal(client, request);
    expect({ code, message }).toEqual({
      code: "invalid_argument",
      message: expect.stringMatching(new RegExp(`^${field.replace(/[[\]]/g, "\\$&")}: `)),
    });
    expect(await host.host.story(sessionUidOf(client.session))).toEqual([]);
    client.say(say("hi"));
    await client.next("turnComplete");
  });

  it.each<readonly [field: string, start: Extract<Saying, { case: "start" }>["value"]]>([
    ["environment_id", { environmentId: "nowhere" }],
    ["host_id", { hostId: "arm" }],
    ["model", { model: "unserved" }],
    ["max_context_tokens", { maxContextTokens: 10 }],
    ["tools[0].name", { tools: [{ name: "no spaces" }] }],
    ["history[0].role", { history: [{ role: "robot", parts: [{ part: { case: "text", value: { text: "x" } } }] }] }],
  ])("is invalid_argument that names %s for a session that cannot be started, and ends the stream", async (field, start) => {
    const models = scriptedModel();
    await using at = await doorWorld("memory", { models: { providerOf: (model) => (model === "test" ? models : undefined) } });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: start });
    await client.ended();
    expect(client.end).toEqual({ error: undefined });
    expect(client.all("error")).toMatchObject([
      { code: "invalid_argument", message: expect.stringMatching(`^${field.replace(/[[\]]/g, "\\$&")}: `) },
    ]);
    expect((await at.journal.list({ limit: 10 })).rows).toEqual([]);
  });

  it("is model_error where the model failed for good; the turn is over, and the next one works", async () => {
    let isBroken = true;
    const model = new TestModel(async function* () {
      yield { kind: "text", partIndex: 0, text: "I was about to" };
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (isBroken) throw new HoldfastError("unavailable", "model: http://10.0.0.7:9 says secret things");
      yield { kind: "completed", response: textResponse("I was about to say"), facts: {} };
    });
    await using at = await doorWorld("memory", { models: model });
    await using host = at.host();
    const client = await started(host);
    client.say(say("hi", { messageId: "m1" }));
    const error = await client.next("error");
    expect(error).toMatchObject({ code: "model_error", retryable: true, message: "model: it is not able to answer now; try again later" });
    expect(await client.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "error" });
    isBroken = false;
    client.say(say("again", { messageId: "m2" }));
    expect(await client.next("turnComplete")).toMatchObject({ messageId: "m2", stopReason: "end_turn" });
    expect(client.story().slice(1)).toEqual([
      "text I was about to",
      "error model_error",
      "complete m1 error",
      "text I was about to",
      "text  say",
      "complete m2 end_turn",
    ]);
  });

  it("is agent_error where the agent gave up: for good, or by a throw that says anything", async () => {
    for (const [thrown, expected] of [
      [
        new HarnessFailure(9, "at http://10.0.0.7: secret"),
        "agent: the state of this server or of the session forbids it to go on; see the session's journal",
      ],
      [new Error("secret"), "agent: it failed; see the session's journal"],
    ] as const) {
      const harnesses = {
        agent: testHarness(async () => {
          throw thrown;
        }),
        history: createHistoryHarness(),
      };
      await using at = await doorWorld("memory", { harnesses });
      await using host = at.host();
      const client = await started(host);
      client.say(say("hi", { messageId: "m1" }));
      expect(await client.next("error")).toMatchObject({ code: "agent_error", message: expected });
      expect(await client.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "error" });
      client.say(say("again", { messageId: "m2" }));
      expect(await client.next("turnComplete")).toMatchObject({ messageId: "m2", stopReason: "error" });
    }
  });

  it("is agent_error with max_steps where the agent asked its model as often as it may", async () => {
    const model = sayingModel(({ toolChoice }) => (toolChoice === undefined ? { calls: [["look", "c", {}]] } : { text: "I give up" }));
    await using at = await doorWorld("memory", { models: model, environments: [environmentWith({ agent: { max_steps: 1 } })] });
    await using host = at.host();
    const client = await started(host, [pureTool("look")]);
    client.say(say("hi", { messageId: "m1" }));
    const { toolCallId } = await client.next("toolRequest");
    client.say({ case: "toolResult", value: { toolCallId, success: true, result: "x" } });
    expect(await client.next("error")).toMatchObject({
      code: "agent_error",
      message: expect.stringMatching(/^agent: the turn was not done/),
    });
    expect(await client.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "max_steps" });
  });

  it("is internal, logged and without a word of what it was, for the server's own faults", async () => {
    const lines: string[] = [];
    const log = { log: (_: string, message: string, fields = {}) => void lines.push(`${message} ${JSON.stringify(fields)}`) };
    await using at = await doorWorld("memory", { log });
    await using host = at.host();
    const client = host.client();
    at.journal.create = async () => {
      throw new Error("secret");
    };
    client.say({ case: "start", value: {} });
    await client.ended();
    expect(client.all("error")).toMatchObject([{ code: "internal", message: "an internal error; the server's log has the details" }]);
    expect(lines).toEqual([expect.stringMatching(/^a request of a conversation failed/)]);
    expect(lines.join()).not.toContain("secret");
  });

  it("is nothing, and no line in the log, for a stream whose client goes when another has taken its session over", async () => {
    const lines: string[] = [];
    const log = { log: (_: string, message: string) => void lines.push(message) };
    await using at = await doorWorld("memory", { log });
    await using host = at.host();
    const client = await started(host);
    const newer = host.client({ session: client.session });
    await newer.next("sessionStarted");
    await client.ended();
    await client.reset();
    expect(client.all("error")).toMatchObject([{ code: "taken_over" }]);
    expect(lines).toEqual([]);
  });

  it("is permission_denied for a caller who may not, whatever the request needs", async () => {
    const denied = new Set<string>();
    const authorizer = {
      authorize: async (_: unknown, action: string) =>
        denied.has(action) ? ({ kind: "denied", reason: `no ${action}` } as const) : ({ kind: "allowed" } as const),
    };
    await using at = await doorWorld("memory", { authorizer, models: new TestModel(silent) });
    await using host = at.host();
    denied.add("session.create");
    const nobody = host.client();
    nobody.say({ case: "start", value: {} });
    await nobody.ended();
    expect(nobody.all("error")).toMatchObject([{ code: "permission_denied", message: "no session.create" }]);
    denied.delete("session.create");
    const client = await started(host);
    denied.add("session.exec");
    expect(await refusal(client, say("hi"))).toMatchObject({ code: "permission_denied", message: "no session.exec" });
    const other = host.client({ session: client.session });
    await other.ended();
    expect(other.all("error")).toMatchObject([{ code: "permission_denied" }]);
    denied.delete("session.exec");
    client.say(say("hi"));
    await client.next("activityUpdate", ({ state }) => state === "thinking");
    denied.add("session.cancel").add("session.approve");
    expect(await refusal(client, { case: "cancelTurn", value: {} })).toMatchObject({ code: "permission_denied" });
    expect(await refusal(client, { case: "cancelSession", value: {} })).toMatchObject({ code: "permission_denied" });
    const decision: Saying = { case: "permissionDecision", value: { toolCallId: "c", approved: true } };
    expect(await refusal(client, decision)).toMatchObject({ code: "permission_denied" });
  });

  it.each<readonly [code: string, message: RegExp, metadata: { session: string; fromSeq?: string }]>([
    ["no_session", /^session: no session has this uid/, { session: "nobody" }],
    ["invalid_argument", /^holdfast-session: /, { session: "" }],
    ["invalid_argument", /^holdfast-from-seq: /, { session: "nobody", fromSeq: "-1" }],
    ["invalid_argument", /^holdfast-from-seq: /, { session: "nobody", fromSeq: "1e3" }],
    ["invalid_argument", /^holdfast-from-seq: /, { session: "nobody", fromSeq: "9999999999999999" }],
  ])("is %s for a stream that goes on with what is not there, and ends it", async (code, message, metadata) => {
    await using at = await doorWorld();
    await using host = at.host();
    const client = host.client(metadata);
    await client.ended();
    expect(client.all("error")).toMatchObject([{ code, message: expect.stringMatching(message) }]);
  });

  it("is invalid_argument past the head, and no_session for a session that was deleted", async () => {
    await using at = await doorWorld("memory", { harnesses: { agent: createAgentHarness(), history: createHistoryHarness() } });
    await using host = at.host();
    const client = await started(host);
    const far = host.client({ session: client.session, fromSeq: 1 });
    await far.ended();
    expect(far.all("error")).toMatchObject([
      { code: "invalid_argument", message: "holdfast-from-seq: must be at most the session's last seq, which is 0" },
    ]);
    await host.host.controller.delete(sessionUidOf(client.session), undefined);
    expect(await refusal(client, say("hi"))).toMatchObject({ code: "no_session", message: "session: it was deleted" });
    const late = host.client({ session: client.session });
    await late.ended();
    expect(late.all("error")).toMatchObject([{ code: "no_session" }]);
  });

  it("is agent_error for a message to a session whose harness answers nothing", async () => {
    await using at = await doorWorld("memory", { harnesses: { agent: createAgentHarness(), history: createHistoryHarness() } });
    await using host = at.host();
    const session = newSessionUid(at.ports);
    await at.journal.create({ ...emptySeed(session, at.ports.clock.nowMs()), harness: "history" });
    const client = host.client({ session });
    expect(await refusal(client, say("hi"))).toMatchObject({ code: "agent_error", message: expect.stringMatching(/^harness: /) });
  });
});
