import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { Seq } from "../../base/index.ts";
import { ToolCallSchema, UsageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ModelFactsSchema } from "../../gen/holdfast/v1/beside_pb.ts";
import { ToolCategoryHint, ToolResultSchema, ToolSchemaSchema } from "../../gen/roz/v1/agent_pb.ts";
import { saying } from "../../testing/agent-world.ts";
import { emptySeed } from "../../testing/host.ts";
import { seededPorts, VirtualClock } from "../../testing/ports.ts";
import { newSessionUid } from "../../base/index.ts";
import { Channels, type ChannelPort, type OpenRequest } from "./channels.ts";
import { AGENT_LIMITS } from "./limits.ts";
import { Outbox } from "./outbox.ts";
import { Paced } from "./paced.ts";
import { SchemaChecks } from "./schema-checks.ts";
import { sessionError } from "./session-error.ts";
import { stopReasonOf } from "./stop-reason.ts";
import { ToldCompletion } from "./told-completion.ts";
import { changedTools, toolSpec } from "./tool-schemas.ts";
import { turnFactsOf } from "./turn-facts.ts";
import { TurnUsage, uint32 } from "./turn-usage.ts";

const piece = (kind: "text" | "reasoning", partIndex: number, text: string) => ({ kind, partIndex, text });

describe("a completion that is told", () => {
  it("is told once: what is new in each part, and the rest when it is whole", () => {
    const told = new ToldCompletion();
    expect(told.partial([piece("text", 0, "Hel")])).toEqual([{ kind: "text", text: "Hel" }]);
    expect(told.partial([piece("text", 0, "Hel")])).toEqual([]);
    expect(told.partial([piece("text", 0, "Hello"), piece("reasoning", 1, "Hm")])).toEqual([
      { kind: "text", text: "lo" },
      { kind: "reasoning", text: "Hm" },
    ]);
    const whole = saying({ text: "Hello there" });
    expect(told.whole(whole)).toEqual([{ kind: "text", text: " there" }]);
    expect(new ToldCompletion().whole(whole)).toEqual([{ kind: "text", text: "Hello there" }]);
  });

  it("tells no character in halves, and nothing that no wire carries", () => {
    const told = new ToldCompletion();
    expect(told.partial([piece("text", 0, "a\ud83d")])).toEqual([{ kind: "text", text: "a" }]);
    expect(told.partial([piece("text", 0, "a\ud83d\ude00")])).toEqual([{ kind: "text", text: "😀" }]);
    expect(told.partial([piece("text", 0, "a\ud83d\ude00\ude00b")])).toEqual([{ kind: "text", text: "\ufffdb" }]);
    expect(told.whole(saying({ text: "a😀\ufffdb!" }))).toEqual([{ kind: "text", text: "!" }]);
  });
});

describe("what a turn has used", () => {
  const facts = (init: object) => create(ModelFactsSchema, init);
  const usage = (inputTokens: bigint, outputTokens: bigint) => create(UsageSchema, { inputTokens, outputTokens });

  it("is what providers said of completions, each once, and what a harness reports of anything else", () => {
    const used = new TurnUsage();
    used.asked();
    used.completed(facts({ inputTokens: 10n, outputTokens: 2n, cachedInputTokens: 7n, cacheWriteTokens: 1n }));
    used.reported(usage(10n, 2n));
    used.reported(usage(100n, 0n));
    used.asked();
    used.completed(facts({}));
    used.reported(usage(20n, 3n));
    expect(used.sums).toMatchObject({ inputTokens: 130, outputTokens: 5, cacheReadTokens: 7, cacheCreationTokens: 1 });
    expect(used.contextTokens).toBe(23);
  });

  it("is at most what the wire can say", () => {
    expect([uint32(-1), uint32(1.9), uint32(5e9)]).toEqual([0, 1, 4_294_967_295]);
    const used = new TurnUsage();
    used.reported(usage(9_000_000_000n, 1n));
    expect(used.sums.inputTokens).toBe(4_294_967_295);
  });
});

it.each([
  ["stop", "end_turn"],
  ["end_turn", "end_turn"],
  ["", "end_turn"],
  ["tool_use", "end_turn"],
  ["length", "max_tokens"],
  ["MAX_TOKENS", "max_tokens"],
  ["max_output_tokens", "max_tokens"],
  ["content_filter", "refusal"],
  ["SAFETY", "refusal"],
  ["stop_sequence", "stop_sequence"],
  ["constructor", "end_turn"],
  ["a provider's own words", "end_turn"],
])("a turn whose last completion stopped for %j ends with %s", (word, reason) => {
  expect(stopReasonOf(word)).toBe(reason);
});

describe("updates at a rate", () => {
  const paced = (last?: string) => {
    const clock = new VirtualClock();
    const out: string[] = [];
    const updates = new Paced<string>(
      { clock, max: 4, spanMs: 1_200, keyOf: (update) => update, emit: (update) => out.push(update) },
      last,
    );
    return { clock, out, updates };
  };

  it("go out at once up to so many in a span, and the last one then, those between lost", () => {
    const { clock, out, updates } = paced("idle");
    for (const update of ["a", "b", "c", "d", "e", "f"]) updates.set(update);
    expect(out).toEqual(["a", "b", "c", "d"]);
    clock.advance(1_199);
    expect(out).toEqual(["a", "b", "c", "d"]);
    clock.advance(1);
    expect(out).toEqual(["a", "b", "c", "d", "f"]);
  });

  it("are never more often than four times a second, whenever they come", () => {
    const { clock, updates } = paced();
    const times: number[] = [];
    const busy = new Paced<string>({
      clock,
      max: 4,
      spanMs: 1_200,
      keyOf: (update) => update,
      emit: () => times.push(clock.monotonicMs()),
    });
    for (let step = 0; step < 400; step++) {
      busy.set(String(step));
      clock.advance(17);
    }
    for (const [index, time] of times.entries()) expect((times[index + 4] ?? Number.POSITIVE_INFINITY) - time).toBeGreaterThan(1_000);
    expect(times.length).toBeGreaterThan(15);
    updates.stop();
  });

  it("are none where nothing changed, and no timer runs then", () => {
    const { clock, out, updates } = paced("idle");
    updates.set("idle");
    updates.set("a");
    updates.set("a");
    for (const update of ["b", "c", "d", "e"]) updates.set(update);
    updates.set("d");
    expect(clock.pending).toBe(0);
    clock.advance(5_000);
    expect(out).toEqual(["a", "b", "c", "d"]);
    updates.set("e");
    updates.stop();
    expect(clock.pending).toBe(0);
  });
});

describe("the responses of a stream", () => {
  const seq = (value: number) => value as Seq;
  const said = (message: string) => sessionError("internal", message);
  const words = async (outbox: Outbox): Promise<string[]> => {
    outbox.end();
    return (await Array.fromAsync(outbox.leaving())).map(
      ({ said: each, seq: at }) => `${each?.case === "error" ? each.value.message : "-"} ${at}`,
    );
  };

  it("leave in their order; of updates of a kind the newest alone, in the place of the first and with its cursor", async () => {
    const outbox = new Outbox(8);
    outbox.put([{ said: said("a"), seq: seq(1) }]);
    outbox.putLatest("activity", { said: said("thinking"), seq: seq(1) });
    outbox.put([{ said: said("b"), seq: seq(2) }]);
    outbox.putLatest("activity", { said: said("idle"), seq: seq(2) });
    outbox.put([{ said: undefined, seq: seq(3) }]);
    expect(outbox.lastSeq).toBe(3);
    expect(await words(outbox)).toEqual(["a 1", "idle 1", "b 2", "- 3"]);
  });

  it("are asked as they leave whether they still hold", async () => {
    const outbox = new Outbox(8);
    let isOpen = true;
    outbox.putIf({ said: said("request"), seq: seq(1) }, () => isOpen);
    outbox.put([{ said: said("b"), seq: seq(1) }]);
    isOpen = false;
    expect(await words(outbox)).toEqual(["b 1"]);
  });

  it("make whoever waits for room wait, until some have left", async () => {
    const outbox = new Outbox(2);
    outbox.put([said("a"), said("b")].map((each) => ({ said: each, seq: seq(1) })));
    let hasRoom = false;
    const waiting = outbox.room().then(() => (hasRoom = true));
    await Promise.resolve();
    expect(hasRoom).toBe(false);
    const leaving = outbox.leaving();
    await leaving.next();
    await waiting;
    expect(hasRoom).toBe(true);
    outbox.close();
    expect(await leaving.next()).toEqual({ done: true, value: undefined });
    outbox.put([{ said: said("late"), seq: seq(1) }]);
    expect(await words(outbox)).toEqual([]);
  });
});

describe("the channel of a session", () => {
  const call = (id: string) => create(ToolCallSchema, { id, tool: "look" });
  const answer = (toolCallId: string) => create(ToolResultSchema, { toolCallId, success: true, result: "x" });
  const world = () => {
    const ports = seededPorts();
    const { uid } = emptySeed(newSessionUid(ports), 0);
    return { clock: ports.clock, channels: new Channels(ports.clock), session: uid, signal: new AbortController() };
  };
  const port = () => {
    const asked: OpenRequest[] = [];
    const taken = { over: 0 };
    const made: ChannelPort = { ask: (request) => void asked.push(request), takenOver: () => void (taken.over += 1) };
    return { made, asked, taken };
  };

  it("keeps a request until a stream comes, and its time runs only while it was sent to one", async () => {
    const { clock, channels, session, signal } = world();
    const outcome = channels.request(session, { call: call("c1"), timeoutMs: 1_000 }, signal.signal);
    clock.advance(10_000);
    const [first, second] = [port(), port()];
    channels.attach(session, first.made);
    expect(first.asked.map(({ call: { id } }) => id)).toEqual(["c1"]);
    first.asked[0]!.sent();
    clock.advance(999);
    channels.attach(session, second.made);
    expect(first.taken.over).toBe(1);
    clock.advance(10_000);
    second.asked[0]!.sent();
    clock.advance(999);
    channels.detach(session, first.made);
    channels.detach(session, second.made);
    clock.advance(10_000);
    const third = port();
    channels.attach(session, third.made);
    third.asked[0]!.sent();
    clock.advance(1_000);
    expect(await outcome).toEqual({ kind: "timed-out" });
    expect(channels.answer(session, answer("c1"))).toBe("unknown");
    expect(clock.pending).toBe(0);
  });

  it("takes an answer once, of whatever stream, until the turn is over", async () => {
    const { channels, session, signal } = world();
    const { made } = port();
    channels.attach(session, made);
    const outcome = channels.request(session, { call: call("c1"), timeoutMs: 1_000 }, signal.signal);
    expect(channels.answer(session, answer("c2"))).toBe("unknown");
    expect(channels.answer(session, answer("c1"))).toBe("taken");
    expect(await outcome).toMatchObject({ kind: "answered", result: { result: "x" } });
    expect(channels.answer(session, answer("c1"))).toBe("repeated");
    channels.turnOver(session);
    expect(channels.answer(session, answer("c1"))).toBe("unknown");
  });

  it("gives up a request with its turn, and counts its streams", async () => {
    const { clock, channels, session, signal } = world();
    const [first, second] = [port(), port()];
    channels.attach(session, first.made);
    const outcome = channels.request(session, { call: call("c1"), timeoutMs: 1_000 }, signal.signal);
    first.asked[0]!.sent();
    signal.abort(new Error("cancelled"));
    await expect(outcome).rejects.toThrow("cancelled");
    expect(first.asked[0]!.isOpen).toBe(false);
    expect(clock.pending).toBe(0);
    await expect(channels.request(session, { call: call("c2"), timeoutMs: 1 }, signal.signal)).rejects.toThrow("cancelled");
    channels.attach(session, second.made);
    expect(channels.streams).toBe(1);
    channels.detach(session, first.made);
    expect(channels.streams).toBe(1);
    channels.detach(session, second.made);
    expect(channels.streams).toBe(0);
  });
});

describe("the tools of a client", () => {
  const tool = (name: string, more = {}) => create(ToolSchemaSchema, { name, ...more });
  const named = (tools: readonly { name: string }[]) => tools.map(({ name }) => name);

  it("act on the world unless they say that they do not, and take the server's time where they name none", () => {
    expect(toolSpec(tool("a"), AGENT_LIMITS)).toMatchObject({ category: "physical", timeoutMs: 120_000 });
    expect(toolSpec(tool("a", { category: ToolCategoryHint.TOOL_CATEGORY_PURE, timeoutMs: 5 }), AGENT_LIMITS)).toMatchObject({
      category: "pure",
      timeoutMs: 5,
    });
    expect(toolSpec(tool("a", { category: 99, timeoutMs: 0xffff_ffff }), AGENT_LIMITS)).toMatchObject({
      category: "physical",
      timeoutMs: 3_600_000,
    });
  });

  it("change by their source: those named after it go, and nobody else's", () => {
    const before = [tool("a__1"), tool("ab__1"), tool("a"), tool("b")];
    expect(named(changedTools(before, { source: "a", tools: [tool("a__2"), tool("b")] }))).toEqual(["ab__1", "a", "a__2", "b"]);
    expect(named(changedTools(before, { source: "", tools: [] }))).toEqual(["a__1", "ab__1", "a", "b"]);
    expect(named(changedTools(before, { source: "", tools: [tool("a__1")] }))).toEqual(["ab__1", "a", "b", "a__1"]);
  });

  it("have each schema compiled once, and so many kept", () => {
    let compiled = 0;
    const checks = new SchemaChecks(() => {
      compiled += 1;
      return () => undefined;
    });
    const first = checks.of({ type: "object" }, "x");
    expect(checks.of({ type: "object" }, "y")).toBe(first);
    expect(compiled).toBe(1);
    for (let index = 0; index < 256; index++) checks.of({ title: String(index) }, "x");
    checks.of({ type: "object" }, "x");
    expect(compiled).toBe(258);
  });
});

it.each([
  ["", ""],
  ["not json", ""],
  ["[]", ""],
  ['{"client":7}', ""],
  ['{"client":{"message_id":7,"tools":[{"name":"a"},7],"observation":{"tool":"x"}}}', ""],
  ['{"client":{"message_id":"m1"}}', "m1"],
])("a config %j says of its client no more than it says", (config, messageId) => {
  const facts = turnFactsOf(new TextEncoder().encode(config));
  expect({ messageId: facts.messageId, tools: facts.clientTools.size, observation: facts.observation }).toEqual({
    messageId,
    tools: 0,
    observation: undefined,
  });
});
