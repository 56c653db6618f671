import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { ToolResult_Code } from "../gen/agentsessions/v1/common_pb.ts";
import { ExecState } from "../gen/agentsessions/v1/session_pb.ts";
import type { AppendRequest, JournalStore } from "../journal/index.ts";
import { ApprovalParkedError, HarnessFailure, textMessage, type ToolResult } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import {
  approvalRef,
  decide,
  DyingStore,
  gatedCall,
  parkedSession,
  resumed,
  testHarness,
  type TestTools,
  toolCall,
  ToolWorld,
  type HarnessRun,
  type TestToolRun,
} from "../testing/index.ts";
import { CONTROLLER_LIMITS } from "./limits.ts";
import { resumeInterrupted } from "./startup.ts";

const paid: TestToolRun = async (call) => ({ output: { paid: call.id } });

/** Asks for one payment, then says how it went. */
const payer: HarnessRun = async (_, sink) => {
  const result = await sink.toolCall(gatedCall("pay", "p1", { args: { amount: 7 } }));
  await sink.output(result.isError ? result.error : "paid");
};

/** Asks for three payments at once. */
const trio: HarnessRun = async (_, sink) => {
  const results = await Promise.allSettled(["p1", "p2", "p3"].map((id) => sink.toolCall(gatedCall("pay", id))));
  const failed = results.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
  if (failed.length > 0) throw new AggregateError(failed);
  await sink.output("all done");
};

const DENIED = `TOOL_RESULT p1 ${ToolResult_Code.APPROVAL_DENIED}`;
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

describe("a parked turn", () => {
  it("is resumed without effect while nothing is decided", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session } = await parkedSession(host);
    const before = await host.story(session);
    expect(await resumed(host, session)).toBeUndefined();
    expect(await host.story(session)).toEqual(before);
  });

  it("takes no new input; Exec without input does what Resume does", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    expect(await refusal(host.begin(session, ["more"]))).toBe("failed_precondition");
    const undecided = await host.begin(session, []);
    expect(undecided.startSeq).toBe(5);
    expect(await undecided.outcome).toEqual({ kind: "parked", ref: asked, lastSeq: 4 });
    await decide(host, session, asked, true);
    await expect(host.begin(session, ["more"])).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("it is decided already; resume, or cancel the turn") as string,
    });
    expect(await refusal(host.begin(session, [], { expectedLastSeq: 4 as never }))).toBe("aborted");
    const turn = await host.begin(session, []);
    expect([turn.executionId, turn.startSeq]).toEqual([asked.executionId, 6]);
    expect(await turn.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(world.tools.ran).toEqual(["p1"]);
  });

  it("whose harness is of another version says which they are, and that a cancel is left", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    await decide(host, session, asked, true);
    await using newer = world.host({ harnesses: { test: testHarness(payer, { version: "2" }) }, hostId: "newer" });
    await expect(resumed(newer, session)).rejects.toThrow(/\(recorded 1, served 2\); serve that version and resume, or cancel the turn$/);
    await newer.controller.cancel({ session, executionId: asked.executionId, reason: "USER" });
    expect((await host.story(session)).at(-1)).toBe("END CANCELED");
  });

  it("is cancelled in one append: denial, receipt, CANCEL and END", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    const commits: number[] = [];
    world.journal.watch(session, (records) => commits.push(records.length));
    await host.controller.cancel({ session, executionId: asked.executionId, reason: "USER" });
    expect(commits).toEqual([4]);
    expect((await host.story(session)).slice(4)).toEqual(["APPROVAL_RESULT p1 false", DENIED, "LIFECYCLE 5 USER", "END CANCELED"]);
    expect((await host.records(session))[5]?.event?.body.value).toMatchObject({ approvalRequestSeq: 3n, approvalDecisionSeq: 5n });
    expect((await world.session(session)).execState).toBe(ExecState.EXEC_CANCELED);
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("is cancelled also while its SUSPEND is on its way", async () => {
    const world = newWorld(payer);
    const suspending = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const slow: JournalStore = {
      ...new DyingStore(world.journal, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view(),
      append: async (request: AppendRequest) => {
        if (request.events.some(({ event }) => event.body.case === "lifecycle" && event.body.value.kind === 1)) {
          suspending.resolve();
          await release.promise;
        }
        return world.journal.append(request);
      },
    };
    await using host = world.host({ journal: slow });
    const session = await host.createSession();
    await host.begin(session, []);
    await suspending.promise;
    const cancelling = host.controller.cancel({ session, executionId: "", reason: "USER" });
    release.resolve();
    expect((await cancelling).projection.openTurn).toBeUndefined();
    expect((await host.story(session)).slice(3)).toEqual([SUSPEND, "APPROVAL_RESULT p1 false", DENIED, "LIFECYCLE 5 USER", "END CANCELED"]);
  });

  it("is deleted likewise", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session } = await parkedSession(host);
    await host.controller.delete(session, undefined);
    expect((await host.story(session)).slice(4)).toEqual([
      "APPROVAL_RESULT p1 false",
      DENIED,
      "LIFECYCLE 5 USER",
      "END CANCELED",
      "LIFECYCLE 6",
    ]);
  });

  it("that was approved and not resumed is cancelled without being run", async () => {
    const world = newWorld(payer);
    await using host = world.host();
    const { session, ref: asked } = await parkedSession(host);
    await decide(host, session, asked, true);
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect((await host.story(session)).slice(5)).toEqual(["TOOL_RESULT p1 0", "LIFECYCLE 5 USER", "END CANCELED"]);
    expect((await host.records(session))[5]?.event?.body.value).toMatchObject({ error: expect.stringContaining("was not run") as string });
    expect(await world.journal.receipts(session)).toEqual([]);
  });

  it("is given nothing more, and stays parked whatever its harness makes of that", async () => {
    const seen: unknown[] = [];
    const endings: Record<string, () => void> = {
      "lets it pass": () => undefined,
      "fails for good": () => {
        throw new HarnessFailure(9, "no");
      },
    };
    for (const [name, end] of Object.entries(endings)) {
      const world = newWorld(async (start, sink) => {
        const fault = await sink.toolCall(gatedCall("pay", "p1")).catch((error: unknown) => error);
        for (const effect of [() => sink.output("x"), () => sink.toolCall(toolCall("pay", "p2"))])
          seen.push(await effect().catch((error: unknown) => error instanceof ApprovalParkedError));
        seen.push(
          await sink.model({ model: start.model, messages: [textMessage("user", "x")] }).catch((error: unknown) => error === fault),
        );
        end();
      });
      await using host = world.host();
      const session = await host.createSession();
      expect(await (await host.begin(session, [])).outcome, name).toMatchObject({ kind: "interrupted" });
      expect((await host.story(session)).slice(1, 3)).toEqual(["TOOL_CALL p1", "APPROVAL_REQUEST p1"]);
      expect((await host.story(session)).at(-1)).toMatch(/^ERROR/);
      const { pendingApproval, execState } = await world.session(session);
      expect([pendingApproval?.toolCallId, execState]).toEqual(["p1", ExecState.EXEC_AWAITING]);
    }
    expect(seen).toEqual([true, true, false, true, true, false]);
  });
});

describe("several gated calls of one group", () => {
  it("are decided one by one in any order; the oldest is the one that is pending", async () => {
    const world = newWorld(trio);
    await using host = world.host();
    const { session, ref: first } = await parkedSession(host);
    expect(first).toMatchObject({ toolCallId: "p1", requestSeq: 3n });
    const of = (id: string, seq: bigint) => approvalRef(first.executionId, id, seq);
    const pending = async () => (await world.session(session)).pendingApproval?.toolCallId;
    await decide(host, session, of("p2", 5n), true);
    expect(await pending()).toBe("p1");
    expect(await resumed(host, session)).toMatchObject({ kind: "parked", ref: { toolCallId: "p1" } });
    expect(world.tools.ran).toEqual(["p2"]);
    await decide(host, session, of("p1", 3n), false);
    expect(await pending()).toBe("p3");
    await decide(host, session, of("p3", 7n), true);
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(world.tools.ran).toEqual(["p2", "p3"]);
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      ...["p1", "p2", "p3"].flatMap((id) => [`TOOL_CALL ${id}`, `APPROVAL_REQUEST ${id}`]),
      SUSPEND,
      "APPROVAL_RESULT p2 true",
      RESUME,
      "TOOL_RESULT p2",
      SUSPEND,
      "APPROVAL_RESULT p1 false",
      "APPROVAL_RESULT p3 true",
      RESUME,
      DENIED,
      "TOOL_RESULT p3",
      "OUTPUT all done",
      "END COMPLETED",
    ]);
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("are all denied when the turn is cancelled, but those that were decided", async () => {
    const world = newWorld(trio);
    await using host = world.host();
    const { session, ref: first } = await parkedSession(host);
    await decide(host, session, approvalRef(first.executionId, "p2", 5n), false);
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    const decisions = (await host.story(session)).filter((line) => line.startsWith("APPROVAL_RESULT"));
    expect(decisions).toEqual(["APPROVAL_RESULT p2 false", "APPROVAL_RESULT p1 false", "APPROVAL_RESULT p3 false"]);
    expect((await host.story(session)).filter((line) => line.startsWith("TOOL_RESULT"))).toHaveLength(3);
  });
});

describe("a crash around an approval", () => {
  it("before SUSPEND: Resume parks the turn", async () => {
    const world = newWorld(payer);
    const session = await world.crashed({ atAppend: 3, when: "before" });
    await using host = world.host();
    expect((await host.story(session)).at(-1)).toBe("APPROVAL_REQUEST p1");
    expect(await resumed(host, session)).toMatchObject({ kind: "parked" });
    expect((await host.story(session)).slice(2)).toEqual(["APPROVAL_REQUEST p1", SUSPEND]);
  });

  it("that left TOOL_CALL without its request: Resume appends the request and parks", async () => {
    const world = newWorld(payer);
    /** An older writer, which appended the two one after the other, and came no further than the first. */
    const torn: JournalStore = {
      ...new DyingStore(world.journal, { atAppend: 3, when: "before" }).view(),
      append: async (request: AppendRequest) => {
        const isIntent = request.events.some(({ event }) => event.body.case === "tool");
        if (!isIntent) return world.journal.append(request);
        await world.journal.append({ ...request, events: request.events.slice(0, 1) });
        throw new HoldfastError("unavailable", "torn");
      },
    };
    const dying = world.host({ journal: torn, hostId: "dying" });
    const session = await dying.createSession();
    await (
      await dying.begin(session, [])
    ).outcome;
    await dying[Symbol.asyncDispose]();
    world.ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
    await using host = world.host();
    expect((await host.story(session)).at(-1)).toBe("TOOL_CALL p1");
    expect(await resumed(host, session)).toMatchObject({ kind: "parked", ref: { requestSeq: 3n } });
    await decide(host, session, (await world.session(session)).pendingApproval!, true);
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(world.tools.ran).toEqual(["p1"]);
  });

  it("after the approved call has begun: it is unknown, or run again under its key if it is idempotent", async () => {
    const outcomes = async (idempotent: boolean) => {
      const world = newWorld(payer, { pay: { idempotent, run: paid } });
      const first = world.host({ hostId: "first" });
      const { session, ref: asked } = await parkedSession(first);
      await decide(first, session, asked, true);
      await first[Symbol.asyncDispose]();
      // RESUME, the start of the call, its result.
      const store = new DyingStore(world.journal, { atAppend: 3, when: "before" });
      const dying = world.host({ journal: store.view(), hostId: "dying" });
      await resumed(dying, session);
      await dying[Symbol.asyncDispose]();
      expect(store.dead).toBe(true);
      world.ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
      await using host = world.host();
      const { controller, journal } = host;
      const options = { journal, controller, log: { log: () => undefined }, signal: new AbortController().signal, concurrencyMax: 1 };
      expect(await resumeInterrupted(options)).toMatchObject({ resumed: 1 });
      const result = (await host.records(session)).find(({ event }) => event?.body.case === "result")?.event?.body.value as ToolResult;
      return { ran: world.tools.ran.length, isError: result.isError, seqs: [result.approvalRequestSeq, result.approvalDecisionSeq] };
    };
    expect(await outcomes(true)).toEqual({ ran: 2, isError: false, seqs: [3n, 5n] });
    expect(await outcomes(false)).toEqual({ ran: 1, isError: true, seqs: [3n, 5n] });
  });

  it("between RESUME and the beginning of the call: it has not begun, and runs", async () => {
    const world = newWorld(payer);
    const first = world.host({ hostId: "first" });
    const { session, ref: asked } = await parkedSession(first);
    await decide(first, session, asked, true);
    await first[Symbol.asyncDispose]();
    const store = new DyingStore(world.journal, { atAppend: 2, when: "before" });
    const dying = world.host({ journal: store.view(), hostId: "dying" });
    await resumed(dying, session);
    await dying[Symbol.asyncDispose]();
    expect(store.dead).toBe(true);
    world.ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
    await using host = world.host();
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(world.tools.ran).toEqual(["p1"]);
  });
});
