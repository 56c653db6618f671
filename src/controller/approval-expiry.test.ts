import { setImmediate as tick } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { SILENT_LOG, type SessionUid } from "../base/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { decide, gatedCall, parkedSession, resumed, type TestHost, toolCall, ToolWorld, type HarnessRun } from "../testing/index.ts";
import { ApprovalSweeps, startExpirer, type ExpiryPolicy } from "./approval-expiry.ts";
import type { PolicyRule } from "./policy.ts";

const HOUR_MS = 3_600_000;

const payer: HarnessRun = async (_, sink) => {
  const { isError } = await sink.toolCall(gatedCall("pay", "p1", { args: { amount: 7 } }));
  await sink.output(isError ? "no" : "yes");
};

const newWorld = (run: HarnessRun = payer): ToolWorld =>
  new ToolWorld(({ clock, digest }) => createMemoryStore({ clock, digest }), run, { pay: async () => ({ output: { ok: true } }) });

const policy = (more: Partial<ExpiryPolicy> = {}): ExpiryPolicy => ({
  rules: [],
  expiry: { afterMs: HOUR_MS, answer: "deny" },
  resume: false,
  ...more,
});

const sweepsOf = (world: ToolWorld, { controller }: TestHost, of: ExpiryPolicy): ApprovalSweeps =>
  new ApprovalSweeps({ journal: world.journal, controller, clock: world.ports.clock, log: SILENT_LOG, policy: of });

describe("a request that nobody answers", () => {
  it("is answered once its time has come, not before, by the host, on record", async () => {
    const world = newWorld();
    await using host = world.host();
    const { session } = await parkedSession(host);
    const sweeps = sweepsOf(world, host, policy());
    world.ports.clock.advance(HOUR_MS - 1);
    expect(await sweeps.sweep()).toEqual({ expired: 0, resumed: 0 });
    world.ports.clock.advance(1);
    expect(await sweeps.sweep()).toEqual({ expired: 1, resumed: 0 });
    expect(await sweeps.sweep()).toEqual({ expired: 0, resumed: 0 });
    expect((await host.records(session)).at(-1)?.event).toMatchObject({
      actor: { issuer: "holdfast", principal: "policy", subject: "expiry" },
      body: { case: "approvalResult", value: { approved: false, reason: "nobody decided within 1h", requestSeq: 3n } },
    });
    // The turn waits for whoever resumes it.
    expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT no");
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("is approved where that is the default answer", async () => {
    const world = newWorld();
    await using host = world.host();
    const { session } = await parkedSession(host);
    world.ports.clock.advance(HOUR_MS);
    await sweepsOf(world, host, policy({ expiry: { afterMs: HOUR_MS, answer: "allow" }, resume: true })).sweep();
    await host.controller.running(session)?.outcome;
    expect((await host.story(session)).at(-2)).toBe("OUTPUT yes");
    expect(world.tools.ran).toEqual(["p1"]);
  });

  it("has its time from its record: a restart neither lengthens nor shortens it", async () => {
    const world = newWorld();
    const first = world.host();
    const { session } = await parkedSession(first);
    await first[Symbol.asyncDispose]();
    world.ports.clock.advance(HOUR_MS - 1_000);
    await using host = world.host({ hostId: "second" });
    const sweeps = sweepsOf(world, host, policy());
    expect(await sweeps.sweep()).toEqual({ expired: 0, resumed: 0 });
    expect(sweeps.sleepMs()).toBe(1_000);
    world.ports.clock.advance(1_000);
    expect(await sweeps.sweep()).toEqual({ expired: 1, resumed: 0 });
    expect(await host.story(session)).toContain("APPROVAL_RESULT p1 false");
  });

  it("expires as the first rule that speaks of its call says, and never where that says so", async () => {
    const ask = (name: string, more: Partial<PolicyRule>): PolicyRule => ({ name, tool: "pay", args: {}, do: "ask", reason: "", ...more });
    const world = newWorld();
    await using host = world.host();
    const { session } = await parkedSession(host);
    const never = ask("small", { args: { amount: { equals: 7 } }, expiry: { afterMs: undefined, answer: "deny" } });
    const soon = ask("rest", { expiry: { afterMs: 1_000, answer: "deny" } });
    world.ports.clock.advance(2 * HOUR_MS);
    expect(await sweepsOf(world, host, policy({ rules: [never, soon] })).sweep()).toMatchObject({ expired: 0 });
    expect(
      await sweepsOf(world, host, policy({ rules: [soon, never], expiry: { afterMs: undefined, answer: "deny" } })).sweep(),
    ).toMatchObject({
      expired: 1,
    });
    expect(await host.story(session)).toContain("APPROVAL_RESULT p1 false");
  });

  it("lets its turn go on by itself where the policy says so, also when the host stopped in between", async () => {
    const world = newWorld();
    const first = world.host();
    const { session } = await parkedSession(first);
    world.ports.clock.advance(HOUR_MS);
    await sweepsOf(world, first, policy()).sweep();
    await first[Symbol.asyncDispose]();
    await using host = world.host({ hostId: "second" });
    expect(await sweepsOf(world, host, policy({ resume: true })).sweep()).toEqual({ expired: 0, resumed: 1 });
    await host.controller.running(session)?.outcome;
    expect((await host.story(session)).at(-1)).toBe("END COMPLETED");
  });

  it("does not let a turn go on that a person decided, nor one that waits for another request", async () => {
    const world = newWorld(async (_, sink) => {
      await Promise.all(["p1", "p2"].map((id) => sink.toolCall(gatedCall("pay", id))));
    });
    await using host = world.host();
    const { session, ref } = await parkedSession(host);
    const row = await world.journal.get(session);
    const second = { ...ref, toolCallId: "p2", requestSeq: BigInt(row!.projection.openTurn!.approvals[1]!.requestSeq) };
    await decide(host, session, ref, true);
    const sweeps = sweepsOf(world, host, policy({ resume: true }));
    expect(await sweeps.sweep()).toEqual({ expired: 0, resumed: 0 });
    await decide(host, session, second, true);
    world.ports.clock.advance(HOUR_MS);
    expect(await sweeps.sweep()).toEqual({ expired: 0, resumed: 0 });
  });

  it("is the session's own: a fork's inherited request does not expire there", async () => {
    const world = newWorld();
    await using host = world.host();
    const { session } = await parkedSession(host);
    const seedOf = (await world.journal.get(session))!.seed;
    const [child] = await host.controller.fork({
      parent: session,
      atSeq: 0 as never,
      children: () => [{ ...seedOf, uid: "0190b5a0-0000-7000-8000-000000000001" as SessionUid, name: "" }],
    });
    world.ports.clock.advance(HOUR_MS);
    expect(await sweepsOf(world, host, policy({ resume: true })).sweep()).toMatchObject({ expired: 1 });
    expect((await host.story(child!.seed.uid)).filter((line) => line.startsWith("APPROVAL_RESULT"))).toEqual([]);
  });
});

describe("an expiry and a person", () => {
  it.each(["a person first", "the expiry first"])("make one decision between them: %s", async (order) => {
    const world = newWorld();
    await using host = world.host();
    const { session, ref } = await parkedSession(host);
    world.ports.clock.advance(HOUR_MS);
    const sweeps = sweepsOf(world, host, policy());
    const person = () =>
      decide(host, session, ref, true, { who: "user://a" }).then(
        () => "person",
        () => "late",
      );
    const expiry = () => sweeps.sweep().then(({ expired }) => expired);
    const [one, other] = order === "a person first" ? await Promise.all([person(), expiry()]) : await Promise.all([expiry(), person()]);
    const results = (await host.story(session)).filter((line) => line.startsWith("APPROVAL_RESULT"));
    expect(results).toHaveLength(1);
    const byPerson = [one, other].includes("person");
    expect([one, other]).toContain(byPerson ? 0 : 1);
    expect(results).toEqual([`APPROVAL_RESULT p1 ${byPerson}`]);
    expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
  });
});

describe("an expirer", () => {
  it("sweeps by the clock until it is stopped, and goes on after a store that failed", async () => {
    const world = newWorld(async (start, sink) => {
      if (start.inputs.length === 0) return payer(start, sink, { signal: new AbortController().signal });
      await sink.toolCall(toolCall("pay", "free"));
    });
    await using host = world.host();
    const { session } = await parkedSession(host);
    const logged: string[] = [];
    let fails = true;
    const journal = {
      ...world.journal,
      read: world.journal.read.bind(world.journal),
      list: (request: Parameters<typeof world.journal.list>[0]) =>
        fails ? Promise.reject(new Error("disk")) : world.journal.list(request),
    } as typeof world.journal;
    const expirer = startExpirer({
      journal,
      controller: host.controller,
      clock: world.ports.clock,
      log: { log: (_, message) => void logged.push(message) },
      policy: policy({ expiry: { afterMs: 5_000, answer: "deny" } }),
    });
    await tick();
    fails = false;
    expect(logged).toEqual(["requests could not be looked through"]);
    for (let second = 0; second < 12; second++) {
      world.ports.clock.advance(1_000);
      for (let turn = 0; turn < 10; turn++) await tick();
    }
    expect(await host.story(session)).toContain("APPROVAL_RESULT p1 false");
    await expirer.stop();
  });
});
