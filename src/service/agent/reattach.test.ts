import { describe, expect, it } from "vitest";
import { DOOR_STORES, doorWorld, environmentWith, pureTool, scriptedModel } from "../../../e2e/support/door.ts";
import { newSessionUid, seqOf, sessionUidOf, type SessionUid } from "../../base/index.ts";
import { CONTROLLER_LIMITS } from "../../controller/index.ts";
import { createAgentHarness, createHistoryHarness } from "../../harnesses/index.ts";
import { describeHarness, type ModelChunk } from "../../spi/index.ts";
import { saying } from "../../testing/agent-world.ts";
import { DyingStore } from "../../testing/dying-store.ts";
import type { DoorClient, Saying } from "../../testing/door-client.ts";
import { emptySeed, TestModel, textResponse } from "../../testing/host.ts";

const result = (toolCallId: string): Saying => ({ case: "toolResult", value: { toolCallId, success: true, result: "done" } });
const say = (content: string, messageId: string): Saying => ({ case: "userMessage", value: { content, messageId } });

/** What was heard of turns, in short words. */
const turnsOf = (client: DoorClient): string[] => client.story().filter((word) => word !== "started");

/** Resolves when the client knows where it is. */
const caughtUp = (client: DoorClient) => client.next("activityUpdate");

describe.each(DOOR_STORES)("a stream that goes on with a session over %s", (store) => {
  it("is told nothing of the past where it says nothing of it and no turn is open", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ text: "a" }, { text: "b" }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say(say("1", "m1"));
    await client.next("turnComplete");
    await client.cut();
    const back = host.client({ session: client.session });
    expect((await back.next("sessionStarted")).sessionId).toBe(client.session);
    expect(await caughtUp(back)).toMatchObject({ state: "idle" });
    expect(back.headers).toEqual({ "holdfast-session": client.session, "holdfast-seq": "6" });
    expect(turnsOf(back)).toEqual([]);
    expect(back.seq).toBe(6);
    back.say(say("2", "m2"));
    await back.next("turnComplete");
    expect(turnsOf(back)).toEqual(["text b", "complete m2 end_turn"]);
  });

  it("is told everything after the record that it has seen, turns that are long over among it", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ thinking: "x", text: "a" }, { text: "b" }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    for (const id of ["m1", "m2"]) {
      client.say(say(id, id));
      await client.next("turnComplete");
    }
    const all = turnsOf(client);
    const last = client.seq;
    for (let fromSeq = 0; fromSeq <= last; fromSeq++) {
      const back = host.client({ session: client.session, fromSeq });
      await caughtUp(back);
      const seen = client.heard.filter(({ seq }) => seq <= fromSeq).length;
      expect(back.seq).toBe(last);
      // The pieces may be others; what they come to is the same.
      const missed = turnsOf(back);
      expect(all.join("|").endsWith(missed.join("|"))).toBe(true);
      if (fromSeq === 0) expect(missed).toEqual(all);
      if (fromSeq === last) expect(missed).toEqual([]);
      expect(seen).toBeGreaterThanOrEqual(0);
      await back.cut();
    }
  });

  it("is asked again for what the open turn waits for, wherever in the turns before it goes on", async () => {
    const looks = [
      ["look", "a", {}],
      ["look", "b", {}],
    ] as const;
    await using at = await doorWorld(store, { models: scriptedModel({ text: "hi" }, { calls: looks }, { text: "seen" }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say(say("1", "m1"));
    await client.next("turnComplete");
    client.say(say("2", "m2"));
    for (const id of ["a", "b"]) expect(await client.next("toolRequest")).toMatchObject({ toolCallId: id });
    client.say(result("a"));
    client.say({ case: "ping", value: {} });
    await client.next("pong");
    const last = client.seq;
    await client.cut();
    for (let fromSeq = 0; fromSeq <= last; fromSeq++) {
      const back = host.client({ session: client.session, fromSeq });
      expect(await back.next("toolRequest")).toMatchObject({ toolCallId: "b" });
      // What was answered before counts once, whatever was told of earlier turns.
      back.say(result("a"));
      back.say({ case: "ping", value: {} });
      await back.next("pong");
      expect(back.all("error")).toEqual([]);
      if (fromSeq === last) back.say(result("b"));
      if (fromSeq === last) expect(await back.next("turnComplete")).toMatchObject({ messageId: "m2", stopReason: "end_turn" });
      else await back.cut();
    }
  });

  it("is told the open turn from its start where it says nothing, the text in progress among it, and goes on with it live", async () => {
    const gate = Promise.withResolvers<void>();
    const model = new TestModel(async function* (): AsyncGenerator<ModelChunk, void, undefined> {
      yield { kind: "reasoning", partIndex: 0, text: "Let me" };
      yield { kind: "text", partIndex: 1, text: "Hello \ud83d" };
      await gate.promise;
      yield { kind: "text", partIndex: 1, text: "\ude00!" };
      const message = saying({ reasoning: ["script", "Let me"], text: "Hello 😀!" });
      yield { kind: "completed", response: { ...textResponse(""), message }, facts: {} };
    });
    await using at = await doorWorld(store, { models: model });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say(say("1", "m1"));
    await client.next("textDelta");
    expect(client.text).toBe("Hello ");
    await client.cut();
    const back = host.client({ session: client.session });
    await back.next("textDelta");
    expect(turnsOf(back)).toEqual(["thinking Let me", "text Hello "]);
    gate.resolve();
    await back.next("turnComplete");
    expect(back.text).toBe("Hello 😀!");
    expect(back.all("textDelta").every(({ content, messageId }) => content.isWellFormed() && messageId === "m1")).toBe(true);
  });

  it("is asked again for tools that were not answered, under the same ids; those that were are not asked for again", async () => {
    const two = {
      calls: [
        ["look", "c1", {}],
        ["smell", "c2", {}],
      ],
    } as const;
    await using at = await doorWorld(store, { models: scriptedModel(two) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look", { timeoutMs: 1_000 }), pureTool("smell")] } });
    client.say(say("1", "m1"));
    await client.next("toolRequest");
    await client.next("toolRequest");
    client.say(result("c2"));
    const answered = host.host.controller.watch({ session: sessionUidOf(client.session), fromSeq: seqOf(1) });
    for await (const item of answered) if (item.kind === "record" && item.record.kind === 5) break;
    at.ports.clock.advance(999);
    await client.cut();
    // Nobody is there: the time of the call stands still.
    at.ports.clock.advance(100_000);
    const back = host.client({ session: client.session, fromSeq: client.seq });
    expect(await back.next("toolRequest")).toMatchObject({ toolCallId: "c1", timeoutMs: 1_000 });
    at.ports.clock.advance(999);
    back.say(result("c2"));
    back.say(result("c1"));
    await back.next("turnComplete");
    expect(back.all("toolRequest").map(({ toolCallId }) => toolCallId)).toEqual(["c1"]);
    expect(back.all("error")).toEqual([]);
  });

  it("finds the turn where it left it: it went on until it needed its client", async () => {
    await using at = await doorWorld(store, {
      models: scriptedModel({ text: "Looking.", calls: [["look", "c1", {}]] }, { text: "Seen." }),
    });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say(say("1", "m1"));
    await caughtUp(client);
    await client.cut();
    const session = sessionUidOf(client.session);
    for await (const item of host.host.controller.watch({ session, fromSeq: seqOf(1) }))
      if (item.kind === "record" && item.record.kind === 4) break;
    const back = host.client({ session, fromSeq: 0 });
    await back.next("toolRequest");
    back.say(result("c1"));
    await back.next("turnComplete");
    expect(turnsOf(back)).toEqual(["text Looking.", "request look c1", "text Seen.", "complete m1 end_turn"]);
  });

  it("takes the session from the stream that has it, which is told; nothing is asked of that one any more", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ calls: [["look", "c1", {}]] }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say(say("1", "m1"));
    await client.next("toolRequest");
    const newer = host.client({ session: client.session, fromSeq: client.seq });
    await newer.next("toolRequest");
    await client.ended();
    expect(client.end).toEqual({ error: undefined });
    expect(client.all("error")).toMatchObject([{ code: "taken_over", retryable: false }]);
    client.say(result("c1"));
    newer.say(result("c1"));
    await newer.next("turnComplete");
    const newest = host.client({ session: client.session });
    await newer.ended();
    await caughtUp(newest);
    newest.say(say("2", "m2"));
    await newest.next("turnComplete");
  });

  it("lets a turn go on that its host left, wherever that was", async () => {
    const model = scriptedModel({ text: "Looking.", calls: [["look", "c1", {}]] }, { text: "Seen." });
    await using at = await doorWorld(store, { models: model });
    const first = at.host();
    const client = first.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say(say("1", "m1"));
    await client.next("toolRequest");
    await first[Symbol.asyncDispose]();
    await using second = at.host();
    const back = second.client({ session: client.session, fromSeq: client.seq });
    expect(await back.next("toolRequest")).toMatchObject({ toolCallId: "c1" });
    back.say(result("c1"));
    await back.next("turnComplete");
    expect(turnsOf(back)).toEqual(["request look c1", "text Seen.", "complete m1 end_turn"]);
    expect(model.requests).toHaveLength(2);
    expect(await at.checks(client.session)).toEqual(["same"]);
  });

  it("takes a result that came to a host which stopped since for what it is: the same again, quietly", async () => {
    const model = scriptedModel({ calls: [["look", "c1", {}]] }, { calls: [["look", "c2", {}]] });
    await using at = await doorWorld(store, { models: model });
    const first = at.host();
    const client = first.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say(say("1", "m1"));
    await client.next("toolRequest");
    client.say(result("c1"));
    await client.next("toolRequest");
    await first[Symbol.asyncDispose]();
    await using second = at.host();
    const back = second.client({ session: client.session, fromSeq: client.seq });
    await back.next("toolRequest");
    back.say(result("c1"));
    back.say(result("c2"));
    await back.next("turnComplete");
    expect(back.all("error")).toEqual([]);
  });

  it("waits for the lease of a host that died, and goes on then", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ text: "yes" }) });
    const session = newSessionUid(at.ports);
    await at.journal.create({ ...emptySeed(session, at.ports.clock.nowMs()), harness: "agent" });
    const dying = at.host({ journal: new DyingStore(at.journal, { atAppend: 2, when: "after" }).view(), hostId: "dying" });
    const turn = await dying.host.begin(session, ["hi"], { config: new TextEncoder().encode("{}") });
    await turn.outcome;
    await using host = at.host();
    const client = host.client({ session });
    await client.next("sessionStarted");
    for (let step = 0; step <= CONTROLLER_LIMITS.leaseMs / 1_000 + 2 && client.all("turnComplete").length === 0; step++) {
      at.ports.clock.advance(1_000);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    await client.next("turnComplete");
    expect(turnsOf(client)).toEqual(["text yes", `complete ${turn.executionId} end_turn`]);
  });

  it("is told why a turn cannot go on here, and that it is over; a further message works", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ calls: [["look", "c1", {}]] }) });
    const first = at.host();
    const client = first.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say(say("1", "m1"));
    await client.next("toolRequest");
    await first[Symbol.asyncDispose]();
    const agent = createAgentHarness();
    const other = { ...agent, describe: async () => describeHarness({ id: "agent", version: "other" }) };
    await using changed = await doorWorld(store, {
      journal: at.journal,
      notes: at.notes,
      ports: at.ports,
      models: scriptedModel({ text: "never" }, { text: "fresh" }),
      harnesses: { agent: other, history: createHistoryHarness() },
    });
    const second = changed.host();
    const back = second.client({ session: client.session, fromSeq: client.seq });
    const error = await back.next("error");
    expect(error).toMatchObject({ code: "agent_error", message: expect.stringMatching(/^harness: its version is not the one/) });
    expect(await back.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "error" });
    back.say(say("2", "m2"));
    await back.next("turnComplete");
    expect(turnsOf(back).slice(2)).toEqual(["text fresh", "complete m2 end_turn"]);
    await second[Symbol.asyncDispose]();
  });

  it("is told of a turn that failed once, however often it comes back", async () => {
    let isBroken = true;
    const model = new TestModel(async function* (): AsyncGenerator<ModelChunk, void, undefined> {
      if (isBroken) throw new Error("secret");
      yield { kind: "completed", response: textResponse("fine"), facts: {} };
    });
    await using at = await doorWorld(store, { models: model });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say(say("1", "m1"));
    await client.next("turnComplete");
    const failed = ["error model_error", "complete m1 error"];
    expect(turnsOf(client)).toEqual(failed);
    const fromStart = host.client({ session: client.session });
    await fromStart.next("turnComplete");
    expect(turnsOf(fromStart)).toEqual(failed);
    const back = host.client({ session: client.session, fromSeq: client.seq });
    expect(await caughtUp(back)).toMatchObject({ state: "thinking" });
    isBroken = false;
    back.say(say("2", "m2"));
    await back.next("turnComplete");
    expect(turnsOf(back)).toEqual(["text fine", "complete m2 end_turn"]);
  });

  it("is told of a turn that somebody else began, under the id of its execution where no message has one", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ text: "by hand" }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    await client.next("sessionStarted");
    const turn = await host.host.begin(sessionUidOf(client.session), ["hi"], { config: new TextEncoder().encode("{}") });
    expect(await client.next("turnComplete")).toMatchObject({ messageId: turn.executionId });
    expect(client.text).toBe("by hand");
  });

  it("of a fork has its parent's tools and environment, and none of its questions and open turns", async () => {
    const model = scriptedModel({ calls: [["look", "c1", {}]] });
    await using at = await doorWorld(store, { models: model, environments: [environmentWith({ description: "x" })] });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say(say("1", "m1"));
    await client.next("toolRequest");
    const parent = sessionUidOf(client.session);
    const fork = async (of: SessionUid): Promise<SessionUid> => {
      const children = (row: { readonly seed: Parameters<typeof at.journal.create>[0] }) => [{ ...row.seed, uid: newSessionUid(at.ports) }];
      const [child] = await host.host.controller.fork({ parent: of, atSeq: seqOf(0), children });
      return child!.seed.uid;
    };
    const grandchild = await fork(await fork(parent));
    const other = host.client({ session: grandchild });
    expect(await caughtUp(other)).toMatchObject({ state: "idle" });
    other.say(say("2", "m2"));
    expect(await other.next("textDelta")).toMatchObject({ messageId: "m2", content: "done" });
    await other.next("turnComplete");
    expect(model.requests.at(-1)!.tools?.map(({ name }) => name)).toEqual(["look"]);
    client.say(result("c1"));
    await client.next("turnComplete");
  });
});
