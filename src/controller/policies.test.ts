import { describe, expect, it } from "vitest";
import { HoldfastError, newSessionUid, type Seq } from "../base/index.ts";
import { ToolResult_Code } from "../gen/agentsessions/v1/common_pb.ts";
import { createPlacedHarness } from "../placement/index.ts";
import { describeHarness, Resumability, type ToolCall, type ToolResult } from "../spi/index.ts";
import { createMemoryBlobStore } from "../stores/blobs/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import {
  decide,
  emptySeed,
  gatedCall,
  MemoryRuntime,
  type RunWithMemory,
  parkedSession,
  resumed,
  type TestHost,
  type TestTools,
  toolCall,
  ToolWorld,
  type HarnessRun,
  seededPorts,
} from "../testing/index.ts";
import type { PolicyRule } from "./policy.ts";

const ran = async (call: ToolCall) => ({ output: { did: call.id } });

const newWorld = (run: HarnessRun, tools: ConstructorParameters<typeof TestTools>[0] = { pay: ran, look: ran }): ToolWorld =>
  new ToolWorld(({ clock, digest }) => createMemoryStore({ clock, digest }), run, tools);

/** Asks for these calls at once, and says how each went. */
const asks =
  (...calls: readonly ToolCall[]): HarnessRun =>
  async (_, sink) => {
    const results = await Promise.all(calls.map((call) => sink.toolCall(call)));
    await sink.output(results.map(({ isError }) => (isError ? "no" : "yes")).join(" "));
  };

const rule = (name: string, to: PolicyRule["do"], more: Partial<PolicyRule> = {}): PolicyRule => ({
  name,
  tool: "*",
  args: {},
  do: to,
  reason: "",
  ...more,
});

/** One turn under these rules, to wherever it comes. */
async function turnUnder(host: TestHost) {
  const session = await host.createSession();
  const outcome = await (await host.begin(session, [])).outcome;
  return { session, outcome };
}

describe("a call that asks for a decision", () => {
  it("runs at once where a rule allows it: asked and decided in one append, by the rule", async () => {
    const decisions: unknown[] = [];
    const world = newWorld(async (_, sink) => {
      await sink.toolCall(gatedCall("pay", "p1"), { onDecision: ({ approved, reason }) => decisions.push([approved, reason]) });
    });
    await using host = world.host({ policies: [rule("small", "allow", { reason: "it is little" })] });
    const { session, outcome } = await turnUnder(host);
    expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "TOOL_CALL p1",
      "APPROVAL_REQUEST p1",
      "APPROVAL_RESULT p1 true",
      "TOOL_RESULT p1",
      "END COMPLETED",
    ]);
    const records = await host.records(session);
    expect(records[3]?.event).toMatchObject({
      actor: { issuer: "holdfast", principal: "policy", subject: "small" },
      body: { value: { reason: "policy small: it is little", requestSeq: 3n } },
    });
    expect(records[4]?.event?.body.value).toMatchObject({ isError: false, approvalRequestSeq: 3n, approvalDecisionSeq: 4n });
    expect(world.tools.ran).toEqual(["p1"]);
    expect(await world.checks(session)).toEqual(["same"]);
    // The harness is told of the decision when it is live, and the same again in the replay.
    expect(decisions).toEqual([decisions[1], decisions[0]]);
    expect(decisions[0]).toEqual([true, "policy small: it is little"]);
  });

  it("is not run where a rule denies it, and its receipt says so", async () => {
    const results: ToolResult[] = [];
    const world = newWorld(async (_, sink) => void results.push(await sink.toolCall(gatedCall("pay", "p1"))));
    await using host = world.host({ policies: [rule("never", "deny", { reason: "no money" })] });
    const { session } = await turnUnder(host);
    expect((await host.story(session)).slice(1, 4)).toEqual(["TOOL_CALL p1", "APPROVAL_REQUEST p1", "APPROVAL_RESULT p1 false"]);
    expect(results[0]).toMatchObject({
      code: ToolResult_Code.APPROVAL_DENIED,
      isError: true,
      approvalRequestSeq: 3n,
      approvalDecisionSeq: 4n,
    });
    expect(results[0]?.error).toContain("no money");
    expect(world.tools.ran).toEqual([]);
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("waits for a person where a rule asks, before one that would allow; the request says why", async () => {
    const world = newWorld(asks(gatedCall("pay", "p1")));
    await using host = world.host({ policies: [rule("dear", "ask", { reason: "who knows" }), rule("rest", "allow")] });
    const { session, ref } = await parkedSession(host);
    expect((await host.records(session))[2]?.event?.body.value).toMatchObject({ reason: "policy dear: who knows" });
    await decide(host, session, ref, true);
    expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
    expect(world.tools.ran).toEqual(["p1"]);
  });

  it("waits for a person where no rule speaks of it", async () => {
    const world = newWorld(asks(gatedCall("pay", "p1")));
    await using host = world.host({ policies: [rule("other", "allow", { tool: "look" })] });
    await parkedSession(host);
    expect(world.tools.ran).toEqual([]);
  });

  it("is refused to a harness that keeps state in memory, whatever a rule says: the same harness elsewhere would be", async () => {
    const descriptor = describeHarness({ id: "m", version: "1", capabilities: { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT } });
    const run: RunWithMemory = async (_memory, _start, sink) => {
      const refused = await sink.toolCall(gatedCall("pay", "p1")).catch((error: unknown) => error);
      await sink.output(refused instanceof HoldfastError ? refused.code : "it ran");
    };
    const runtime = new MemoryRuntime({ describe: () => descriptor, run, captures: createMemoryBlobStore(seededPorts()) });
    const world = newWorld(asks());
    const placed = [createPlacedHarness({ name: "test", source: "static", runtime, sandboxed: true })];
    await using host = world.host({ policies: [rule("all", "allow")], harnesses: {}, placed });
    const { session } = await turnUnder(host);
    expect(await host.story(session)).toContain("OUTPUT failed_precondition");
    expect(world.tools.ran).toEqual([]);
  });
});

describe("a call that asks for none", () => {
  it("is as it was where a rule allows it: there is no question to answer", async () => {
    const world = newWorld(asks(toolCall("look", "l1")));
    await using host = world.host({ policies: [rule("all", "allow")] });
    const { session } = await turnUnder(host);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL l1", "TOOL_RESULT l1", "OUTPUT yes", "END COMPLETED"]);
  });

  it.each(["deny", "ask"] as const)("is answered by the rule that says %s, with no request that its harness did not make", async (to) => {
    const world = newWorld(asks(toolCall("look", "l1")));
    await using host = world.host({ policies: [rule("rule", to)] });
    const { session } = await turnUnder(host);
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "TOOL_CALL l1",
      expect.stringContaining("TOOL_RESULT l1"),
      "OUTPUT no",
      "END COMPLETED",
    ]);
    const result = (await host.records(session))[2]?.event;
    expect(result).toMatchObject({ actor: { issuer: "holdfast", principal: "policy", subject: "rule" } });
    expect(result?.body.value).toMatchObject({
      isError: true,
      approvalRequestSeq: 0n,
      error: expect.stringContaining("policy rule") as string,
    });
    expect(world.tools.ran).toEqual([]);
    expect(await world.checks(session)).toEqual(["same"]);
    // Nothing took effect under its key, so the key is free.
    expect(await world.journal.receipts(session, { key: "l1" })).toEqual([]);
  });
});

describe("calls that are asked at once", () => {
  it("are decided one by one: what a rule decides does not wait for what a person does", async () => {
    const calls = [
      gatedCall("pay", "a", { args: { to: "x" } }),
      gatedCall("pay", "b", { args: { to: "y" } }),
      gatedCall("pay", "c"),
      toolCall("look", "d"),
    ];
    const world = newWorld(asks(...calls));
    const policies = [rule("x", "allow", { args: { to: { equals: "x" } } }), rule("y", "deny", { args: { to: { equals: "y" } } })];
    await using host = world.host({ policies });
    const { session, ref } = await parkedSession(host);
    expect(ref).toMatchObject({ toolCallId: "c" });
    expect(world.tools.ran.toSorted()).toEqual(["a", "d"]);
    const row = await world.journal.get(session);
    expect(row?.projection.openTurn?.approvals.map(({ toolCallId }) => toolCallId)).toEqual(["c"]);
    await decide(host, session, ref, true);
    expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT yes no yes yes");
    expect(world.tools.ran.toSorted()).toEqual(["a", "c", "d"]);
    expect(await world.checks(session)).toEqual(["same"]);
  });
});

describe("what is on record", () => {
  it("is not decided again when the policy has changed: neither in a replay nor in a recovery", async () => {
    // The host dies at the append of the result: the call was allowed and may have run, and its tool is idempotent.
    const world = newWorld(asks(gatedCall("pay", "p1")), { pay: { idempotent: true, run: ran } });
    const session = await world.crashed({ atAppend: 3, when: "before" }, { policies: [rule("old", "allow")] });
    await using host = world.host({ policies: [rule("new", "deny")] });
    expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "TOOL_CALL p1",
      "APPROVAL_REQUEST p1",
      "APPROVAL_RESULT p1 true",
      "TOOL_RESULT p1",
      "OUTPUT yes",
      "END COMPLETED",
    ]);
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("is an unknown outcome where the allowed tool may have run and is not idempotent", async () => {
    const world = newWorld(asks(gatedCall("pay", "p1")));
    const session = await world.crashed({ atAppend: 3, when: "before" }, { policies: [rule("old", "allow")] });
    await using host = world.host({ policies: [rule("old", "allow")] });
    expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT no");
    expect(world.tools.ran).toEqual(["p1"]);
  });

  it("a denial is one append with its call: a crash before it leaves nothing, a crash after it nothing to do", async () => {
    const world = newWorld(asks(gatedCall("pay", "p1")));
    const policies = [rule("never", "deny")];
    const before = await world.crashed({ atAppend: 2, when: "before" }, { policies });
    const after = await world.crashed({ atAppend: 2, when: "after" }, { policies });
    await using host = world.host();
    expect(await host.story(before)).toEqual(["EXECUTION_START"]);
    expect(await resumed(host, after)).toMatchObject({ state: "COMPLETED" });
    expect(world.tools.ran).toEqual([]);
    expect(await world.checks(after)).toEqual(["same"]);
  });

  it("waits for a person still when a rule comes that would allow it", async () => {
    const world = newWorld(asks(gatedCall("pay", "p1")));
    const first = world.host();
    const { session } = await parkedSession(first);
    await first[Symbol.asyncDispose]();
    await using host = world.host({ policies: [rule("all", "allow")] });
    expect(await resumed(host, session)).toBeUndefined();
    expect(world.tools.ran).toEqual([]);
  });

  it("a fork takes over what was decided and done, and asks the policy anew for what it asks anew", async () => {
    const world = newWorld(asks(gatedCall("pay", "p1")));
    const first = world.host({ policies: [rule("all", "allow")] });
    const { session } = await turnUnder(first);
    const children = () => [emptySeed(newSessionUid(world.ports), world.ports.clock.nowMs())];
    const [child] = await first.controller.fork({ parent: session, atSeq: 0 as Seq, children });
    await first[Symbol.asyncDispose]();
    await using host = world.host({ policies: [rule("no", "deny")] });
    const uid = child!.seed.uid;
    await (
      await host.begin(uid, [])
    ).outcome;
    expect((await host.story(uid)).filter((line) => line.startsWith("APPROVAL_RESULT"))).toEqual([
      "APPROVAL_RESULT p1 true",
      "APPROVAL_RESULT p1 false",
    ]);
    expect(world.tools.ran).toEqual(["p1"]);
    expect(await world.checks(uid)).toEqual(["same", "same"]);
  });
});
