import { describe, expect, it } from "vitest";
import { HoldfastError, type SessionUid } from "../base/index.ts";
import { ToolResult_Code } from "../gen/agentsessions/v1/common_pb.ts";
import { ComputeState, ExecState } from "../gen/agentsessions/v1/session_pb.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import {
  approvalRef,
  decide,
  gatedCall,
  parkedSession,
  resumed,
  type TestTools,
  toolCall,
  ToolWorld,
  type HarnessRun,
  type TestToolRun,
} from "../testing/index.ts";
import { resumeInterrupted } from "./startup.ts";

const paid: TestToolRun = async (call) => ({ output: { paid: call.id } });

/** Asks for one payment, then says how it went. */
const payer: HarnessRun = async (_, sink) => {
  const result = await sink.toolCall(gatedCall("pay", "p1", { args: { amount: 7 } }));
  await sink.output(result.isError ? result.error : "paid");
};

const SUSPEND = "LIFECYCLE 1";
const RESUME = "LIFECYCLE 2";

const newWorld = (run: HarnessRun, tools: ConstructorParameters<typeof TestTools>[0] = { pay: paid }): ToolWorld =>
  new ToolWorld(({ clock, digest }) => createMemoryStore({ clock, digest }), run, tools);

async function refusal(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => "OK",
    (error: unknown) => (error instanceof HoldfastError ? error.code : String(error)),
  );
}

describe("a call that needs a decision", () => {
  it("is committed with its request, and its turn parks: cold, waiting, nothing run", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL p1", "APPROVAL_REQUEST p1", SUSPEND]);
    const row = await world.session(session);
    expect(row).toMatchObject({ execState: ExecState.EXEC_AWAITING, computeState: ComputeState.COMPUTE_COLD, pendingApproval: asked });
    expect(asked).toMatchObject({ toolCallId: "p1", requestSeq: 3n });
    expect(world.tools.ran).toEqual([]);
    expect((await world.journal.get(session))?.holder).toBeUndefined();
  });

  it("runs once after it was approved and the session resumed; its receipt names request and decision", async () => {
    const decisions: unknown[] = [];
    const world = newWorld(async (_, sink) => {
      await sink.toolCall(gatedCall("pay", "p1"), { onDecision: ({ approved, reason }) => decisions.push([approved, reason]) });
      await sink.output("paid");
    });
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    const { row, decision } = await decide(host, session, asked, true, { reason: "fine", who: "user://a" });
    expect([row.projection.lastSeq, decision.seq]).toEqual([5, 5]);
    expect(world.tools.ran).toEqual([]);
    expect((await world.session(session)).pendingApproval).toBeUndefined();
    expect((await world.session(session)).execState).toBe(ExecState.EXEC_AWAITING);
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect((await host.story(session)).slice(3)).toEqual([
      SUSPEND,
      "APPROVAL_RESULT p1 true",
      RESUME,
      "TOOL_RESULT p1",
      "OUTPUT paid",
      "END COMPLETED",
    ]);
    const records = await host.records(session);
    expect(records[4]?.event).toMatchObject({ actor: { principal: "user://a" }, body: { value: { reason: "fine", requestSeq: 3n } } });
    expect(records[6]?.event?.body.value).toMatchObject({ approvalRequestSeq: 3n, approvalDecisionSeq: 5n, isError: false });
    expect(world.tools.ran).toEqual(["p1"]);
    expect(decisions).toEqual([[true, "fine"]]);
    // A replay tells it as it was.
    expect(await world.checks(session)).toEqual(["same"]);
    expect(decisions).toHaveLength(2);
  });

  it("is never run once it was denied, and the harness goes on", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    await decide(host, session, asked, false, { reason: "too dear" });
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    const records = await host.records(session);
    expect(records[6]?.event?.body.value).toMatchObject({
      code: ToolResult_Code.APPROVAL_DENIED,
      isError: true,
      approvalRequestSeq: 3n,
      approvalDecisionSeq: 5n,
    });
    expect((await host.story(session)).at(-2)).toContain("too dear");
    expect(world.tools.ran).toEqual([]);
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("has a receipt like any other where its executor fails", async () => {
    const world = newWorld(payer, {
      pay: async () => {
        throw new HoldfastError("unavailable", "bank: it cannot be reached");
      },
    });
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    await decide(host, session, asked, true);
    await resumed(host, session);
    expect((await host.records(session))[6]?.event?.body.value).toMatchObject({
      code: ToolResult_Code.EXECUTOR_ERROR,
      approvalRequestSeq: 3n,
      approvalDecisionSeq: 5n,
    });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT bank: it cannot be reached");
  });

  it("waits across restarts and hosts, and is left alone at a host's start until somebody resumes it", async () => {
    const world = newWorld(payer);
    const first = world.host({ hostId: "first" });
    const { session, ref: asked } = await parkedSession(first);
    await first[Symbol.asyncDispose]();
    world.ports.clock.advance(3 * 24 * 3_600_000);
    await using host = world.host({ hostId: "second" });
    await decide(host, session, asked, true);
    const { controller, journal } = host;
    const log = { log: () => undefined };
    const report = await resumeInterrupted({ journal, controller, log, signal: new AbortController().signal, concurrencyMax: 1 });
    expect(report).toEqual({ resumed: 0, refused: 0, left: 1 });
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(world.tools.ran).toEqual(["p1"]);
  });

  it("stays decided where the host has no executor for it", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    await decide(host, session, asked, true);
    await using bare = world.host({ tools: undefined });
    const before = await host.story(session);
    expect(await refusal(bare.controller.resume(session, undefined))).toBe("failed_precondition");
    expect(await host.story(session)).toEqual(before);
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
  });
});

describe("a decision", () => {
  it("is one record, however often it is made, also after its turn has ended and its session was deleted", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    const first = await decide(host, session, asked, true, { reason: "r", who: "user://a" });
    const again = async () => (await decide(host, session, asked, true, { reason: "r", who: "user://a" })).decision;
    expect(await again()).toEqual(first.decision);
    await resumed(host, session);
    expect(await again()).toEqual(first.decision);
    await host.controller.delete(session, undefined);
    expect(await again()).toEqual(first.decision);
    expect(await refusal(decide(host, session, asked, false, { reason: "r", who: "user://a" }))).toBe("failed_precondition");
    expect(await refusal(decide(host, session, asked, true, { reason: "other", who: "user://a" }))).toBe("failed_precondition");
    expect(await refusal(decide(host, session, asked, true, { reason: "r", who: "user://b" }))).toBe("failed_precondition");
    expect((await host.story(session)).filter((line) => line.startsWith("APPROVAL_RESULT"))).toHaveLength(1);
  });

  it("needs the reference of an open request of the session's own", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    const before = await host.story(session);
    const wrong = [
      approvalRef("other", asked.toolCallId, asked.requestSeq),
      approvalRef(asked.executionId, "other", asked.requestSeq),
      approvalRef(asked.executionId, asked.toolCallId, 2n),
      approvalRef(asked.executionId, asked.toolCallId, 99n),
    ];
    for (const each of wrong) expect(await refusal(decide(host, session, each, true))).toBe("failed_precondition");
    expect(await refusal(decide(host, "nobody" as SessionUid, asked, true))).toBe("not_found");
    expect(await host.story(session)).toEqual(before);
    // Stale: its turn was cancelled, which decided it.
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect(await refusal(decide(host, session, asked, true))).toBe("failed_precondition");
  });

  it("is made once, by whoever of several comes first", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    await using other = world.host({ hostId: "other" });
    const { session, ref: asked } = await parkedSession(host);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        refusal(decide(index % 2 === 0 ? host : other, session, asked, index < 4, { who: `u${index}` })),
      ),
    );
    expect(answers.filter((answer) => answer === "OK")).toHaveLength(1);
    expect(new Set(answers)).toEqual(new Set(["OK", "failed_precondition"]));
    expect((await host.story(session)).filter((line) => line.startsWith("APPROVAL_RESULT"))).toHaveLength(1);
  });

  it("may come before the turn has parked, and goes before its SUSPEND", async () => {
    const release = Promise.withResolvers<void>();
    const world = newWorld(
      async (_, sink) => {
        const [gated, free] = await Promise.allSettled([sink.toolCall(gatedCall("pay", "p1")), sink.toolCall(toolCall("slow", "s1"))]);
        if (gated.status === "rejected") throw gated.reason as Error;
        await sink.output(`both: ${free.status}`);
      },
      { pay: paid, slow: async () => (await release.promise, {}) },
    );
    await using host = world.host();
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    await new Promise(setImmediate);
    const asked = (await world.session(session)).pendingApproval!;
    await decide(host, session, asked, true);
    release.resolve();
    expect(await turn.outcome).toMatchObject({ kind: "parked" });
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "TOOL_CALL p1",
      "APPROVAL_REQUEST p1",
      "TOOL_CALL s1",
      "APPROVAL_RESULT p1 true",
      "TOOL_RESULT s1",
      SUSPEND,
    ]);
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("that came before the turn has parked stands when the turn is cancelled then", async () => {
    const world = newWorld(
      async (_, sink) => {
        const calls = [sink.toolCall(gatedCall("pay", "p1")), sink.toolCall(toolCall("slow", "s1"))];
        await Promise.all(calls);
      },
      { pay: paid, slow: () => new Promise(() => undefined) },
    );
    await using host = world.host();
    const session = await host.createSession();
    await host.begin(session, []);
    await new Promise(setImmediate);
    const asked = (await world.session(session)).pendingApproval!;
    const decisions = await Promise.all([decide(host, session, asked, true), refusal(decide(host, session, asked, false))]);
    expect(decisions[1]).toBe("failed_precondition");
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    const story = await host.story(session);
    expect(story.filter((line) => line.startsWith("APPROVAL_RESULT"))).toEqual(["APPROVAL_RESULT p1 true"]);
    expect(story.slice(-4)).toEqual(["TOOL_RESULT p1 0", "TOOL_RESULT s1 2", "LIFECYCLE 5 USER", "END CANCELED"]);
  });

  it("is not a fork's to make", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    const children = ({ seed }: { seed: object }) => [{ ...seed, uid: "child" } as never];
    await host.controller.fork({ parent: session, atSeq: 0 as never, children });
    const child = "child" as SessionUid;
    expect((await world.session(child)).pendingApproval).toBeUndefined();
    expect(await refusal(decide(host, child, asked, true))).toBe("failed_precondition");
    expect(await refusal(host.controller.resume(child, undefined))).toBe("failed_precondition");
    expect(await (await host.begin(child, ["x"])).outcome).toMatchObject({ kind: "parked" });
    await decide(host, session, asked, true);
    await resumed(host, session);
    expect(world.tools.ran).toEqual(["p1"]);
  });
});
