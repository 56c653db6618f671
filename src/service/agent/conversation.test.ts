import { describe, expect, it } from "vitest";
import { DOOR_STORES, doorWorld, environmentWith, physicalTool, pureTool, scriptedModel } from "../../../e2e/support/door.ts";
import { sessionUidOf } from "../../base/index.ts";
import { silent, TestModel, textResponse } from "../../testing/host.ts";

describe.each(DOOR_STORES)("a conversation over %s", (store) => {
  it("starts, streams thinking and text in pieces, and completes", async () => {
    await using at = await doorWorld(store, {
      models: scriptedModel({ thinking: "Hm.", pieces: ["Hello ", "there"], stopReason: "stop" }),
    });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    const started = await client.next("sessionStarted");
    expect(started).toMatchObject({ sessionId: client.session, model: "test" });
    expect(started.permissions.map(({ toolPattern, policy, category }) => [toolPattern, policy, category])).toEqual([
      ["*", "allow", "pure"],
      ["*", "require_confirmation", "physical"],
    ]);
    client.say({ case: "userMessage", value: { content: "hi", messageId: "m1" } });
    const { messageId, usage, stopReason } = await client.next("turnComplete");
    expect({ messageId, stopReason }).toEqual({ messageId: "m1", stopReason: "end_turn" });
    expect(usage).toMatchObject({ inputTokens: 10, outputTokens: 5, cacheReadTokens: 4, cacheCreationTokens: 0 });
    expect(client.story()).toEqual(["started", "thinking Hm.", "text Hello ", "text there", "complete m1 end_turn"]);
    for (const delta of [...client.all("textDelta"), ...client.all("thinkingDelta")]) expect(delta.messageId).toBe("m1");
    expect(await host.host.story(sessionUidOf(client.session))).toEqual([
      "EXECUTION_START",
      "INPUT hi",
      "MODEL_CALL",
      "OUTPUT reasoningHello there",
      "USAGE",
      "END COMPLETED",
    ]);
    expect(client.seq).toBe(6);
  });

  it("has its client run tools, and tells the model and the journal what came of it", async () => {
    const model = scriptedModel({ text: "Let me look.", calls: [["look", "c1", { at: "door" }]] }, { text: "It is open." });
    await using at = await doorWorld(store, { models: model });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say({ case: "userMessage", value: { content: "Is the door open?", messageId: "m1" } });
    const request = await client.next("toolRequest");
    expect(request).toMatchObject({ toolCallId: "c1", toolName: "look", parameters: { at: "door" }, timeoutMs: 120_000 });
    client.say({
      case: "toolResult",
      value: { toolCallId: "c1", success: true, result: "open", exitCode: 0, truncated: true, durationMs: 12n },
    });
    await client.next("turnComplete");
    expect(client.story()).toEqual(["started", "text Let me look.", "request look c1", "text It is open.", "complete m1 end_turn"]);
    const recorded = (await host.host.records(sessionUidOf(client.session))).flatMap(({ event }) =>
      event?.body.case === "result" ? [event.body.value] : [],
    );
    const told = model.requests[1]!.messages.at(-1)!.parts[0]!.part;
    for (const result of [recorded[0], told.value]) {
      expect(result).toMatchObject({ isError: false, output: { exit_code: 0, truncated: true, duration_ms: 12 } });
      expect(result).toMatchObject({ content: [{ part: { value: { text: "open" } } }] });
    }
    expect(model.requests[0]!.tools?.map(({ name, description }) => [name, description])).toEqual([["look", "look it"]]);
    expect(await at.checks(client.session)).toEqual(["same"]);
  });

  it("tells what the agent does, and how much of it to show", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ calls: [["look", "c1", {}]] }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say({ case: "userMessage", value: { content: "go" } });
    await client.next("toolRequest");
    client.say({ case: "toolResult", value: { toolCallId: "c1", success: true, result: "seen" } });
    await client.next("activityUpdate", ({ state }) => state === "idle");
    expect(client.all("activityUpdate").map(({ state, detail }) => [state, detail])).toEqual([
      ["thinking", ""],
      ["calling_tool", "look"],
      ["thinking", ""],
      ["idle", ""],
    ]);
    await client.next("presenceHint", ({ level }) => level === "hidden");
    expect(client.all("presenceHint").map(({ level }) => level)).toEqual(["mini", "hidden"]);
  });

  it("asks a person before a tool runs that has to be confirmed, and runs it when that is approved", async () => {
    await using at = await doorWorld(store, {
      models: scriptedModel({ calls: [["look", "c1", {}]] }),
      environments: [environmentWith({ permissions: [{ tool: "look", policy: "require_confirmation", reason: "it is private" }] })],
    });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    expect((await client.next("sessionStarted")).permissions[0]).toMatchObject({ toolPattern: "look", reason: "it is private" });
    client.say({ case: "userMessage", value: { content: "go", messageId: "m1" } });
    expect(await client.next("activityUpdate", ({ state }) => state === "waiting_approval")).toMatchObject({ detail: "c1" });
    expect((await at.journal.get(sessionUidOf(client.session)))?.projection.openTurn?.approvals).toMatchObject([{ toolCallId: "c1" }]);
    client.say({ case: "permissionDecision", value: { toolCallId: "c1", approved: true } });
    await client.next("toolRequest");
    client.say({ case: "toolResult", value: { toolCallId: "c1", success: true, result: "seen" } });
    await client.next("turnComplete");
    expect(client.story()).toEqual(["started", "request look c1", "text done", "complete m1 end_turn"]);
    expect(await at.checks(client.session)).toEqual(["same"]);
  });

  it("does not run a tool that is denied, and never asks about one that is blocked", async () => {
    const model = scriptedModel({ calls: [["look", "c1", {}]] }, { calls: [["wipe", "c2", {}]] });
    await using at = await doorWorld(store, {
      models: model,
      environments: [
        environmentWith({
          permissions: [
            { tool: "look", policy: "require_confirmation" },
            { tool: "wipe", policy: "block", reason: "nothing is wiped here" },
          ],
        }),
      ],
    });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look"), pureTool("wipe")] } });
    client.say({ case: "userMessage", value: { content: "go", messageId: "m1" } });
    await client.next("activityUpdate", ({ state }) => state === "waiting_approval");
    client.say({ case: "permissionDecision", value: { toolCallId: "c1", approved: false } });
    await client.next("turnComplete");
    expect(client.story()).toEqual(["started", "text done", "complete m1 end_turn"]);
    expect(client.all("activityUpdate").filter(({ state }) => state === "waiting_approval")).toHaveLength(1);
    const told = model.requests.slice(1).map(({ messages }) => messages.at(-1)!.parts[0]!.part.value);
    expect(told).toMatchObject(
      [{ isError: true, error: /denied/ }, { error: /nothing is wiped here/ }].map(({ error }) => ({
        error: expect.stringMatching(error),
      })),
    );
    expect(model.requests[0]!.tools?.map(({ name }) => name)).toEqual(["look"]);
  });

  it("cancels a turn, which is no error, and goes on with the next message", async () => {
    let isSilent = true;
    const model = new TestModel(async function* (request, signal) {
      if (isSilent) yield* silent(request, signal);
      yield { kind: "completed", response: textResponse("there"), facts: {} };
    });
    await using at = await doorWorld(store, { models: model });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say({ case: "userMessage", value: { content: "hi", messageId: "m1" } });
    await client.next("activityUpdate", ({ state }) => state === "thinking");
    client.say({ case: "cancelTurn", value: { reason: "enough" } });
    await client.next("turnComplete");
    isSilent = false;
    client.say({ case: "userMessage", value: { content: "still there?", messageId: "m2" } });
    await client.next("turnComplete");
    expect(client.story()).toEqual(["started", "complete m1 cancelled", "text there", "complete m2 end_turn"]);
    client.say({ case: "cancelSession", value: { reason: "bye" } });
    await client.ended();
    expect(client.end).toEqual({ error: undefined });
    expect((await host.host.story(sessionUidOf(client.session))).at(-1)).toMatch(/^LIFECYCLE 1/);
  });

  it("ends a session in the middle of a turn: the turn's end is told before the stream ends", async () => {
    await using at = await doorWorld(store, { models: new TestModel(silent) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say({ case: "userMessage", value: { content: "hi", messageId: "m1" } });
    await client.next("activityUpdate", ({ state }) => state === "thinking");
    client.say({ case: "cancelSession", value: {} });
    await client.ended();
    expect(client.story()).toEqual(["started", "complete m1 cancelled"]);
  });

  it("gives a message an id that comes without one", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ text: "yes" }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say({ case: "userMessage", value: { content: "hi" } });
    const { messageId } = await client.next("turnComplete");
    expect(messageId).toMatch(/^[0-9a-f-]{36}$/);
    expect(client.all("textDelta").map((delta) => delta.messageId)).toEqual([messageId]);
  });

  it("answers pings whenever they come", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ calls: [["look", "c1", {}]] }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "ping", value: {} });
    await client.next("pong");
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say({ case: "userMessage", value: { content: "go" } });
    await client.next("toolRequest");
    client.say({ case: "ping", value: {} });
    await client.next("pong");
  });

  it("tells a client that says nothing more what is under way, and ends its stream then", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ pieces: ["a", "b", "c"] }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say({ case: "userMessage", value: { content: "hi", messageId: "m1" } });
    client.finish();
    await client.ended();
    expect(client.text).toBe("abc");
    expect(client.story().at(-1)).toBe("complete m1 end_turn");
    const other = host.client();
    other.say({ case: "ping", value: {} });
    other.finish();
    await other.ended();
    expect(other.story()).toEqual(["pong"]);
  });

  it("ends the stream of a client that says nothing more once it has been asked for all that its turn waits for, and asks again later", async () => {
    const looks = [
      ["look", "a", {}],
      ["look", "b", {}],
    ] as const;
    await using at = await doorWorld(store, { models: scriptedModel({ calls: looks }, { text: "seen" }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say({ case: "userMessage", value: { content: "look", messageId: "m1" } });
    client.finish();
    await client.ended();
    expect(client.story()).toEqual(["started", "request look a", "request look b"]);
    const later = host.client({ session: client.session, fromSeq: client.seq });
    for (const id of ["a", "b"]) {
      const { toolCallId } = await later.next("toolRequest");
      expect(toolCallId).toBe(id);
      later.say({ case: "toolResult", value: { toolCallId, success: true, result: "open" } });
    }
    later.finish();
    await later.ended();
    expect(later.story().slice(-2)).toEqual(["text seen", "complete m1 end_turn"]);
  });

  it("uses a mode's tools: physical ones are on offer in ooda_re_act, and not in react", async () => {
    const look = { tool: "look", maxAgeMs: 60_000 };
    const model = scriptedModel({ text: "a" }, { text: "b" });
    await using at = await doorWorld(store, { models: model, environments: [environmentWith({ observation: look })] });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look"), physicalTool("move"), { name: "unsaid" }] } });
    client.say({ case: "userMessage", value: { content: "one" } });
    await client.next("turnComplete");
    for (const aiMode of ["ooda_re_act", "ooda_react", "ooda"]) {
      client.say({ case: "userMessage", value: { content: "two", aiMode } });
      const { toolCallId } = await client.next("toolRequest");
      client.say({ case: "toolResult", value: { toolCallId, success: true, result: "the door is open" } });
      await client.next("turnComplete");
    }
    const offered = model.requests.map(({ tools }) => tools?.map(({ name }) => name));
    const all = ["look", "move", "unsaid"];
    expect(offered).toEqual([["look"], all, all, all]);
  });
});
