import { describe, expect, it } from "vitest";
import { SILENT_LOG, type HostId, type SessionUid, type Ports } from "../base/index.ts";
import { DeletionState, ComputeState, ExecState } from "../gen/agentsessions/v1/session_pb.ts";
import { execStateOf, type JournalStore } from "../journal/index.ts";
import type { Harness } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { seededPorts, silent, testHarness, TestHost, TestModel } from "../testing/index.ts";

const asksForever = testHarness(async (start, sink) => {
  await sink.model({ model: "test", messages: start.inputs });
});

function setup(harness: Harness = asksForever) {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const model = new TestModel(silent);
  const newHost = (hostId: string, overrides: { journal?: JournalStore; ports?: Ports } = {}) =>
    new TestHost({ journal, ports, harnesses: { test: harness }, models: model, hostId, ...overrides });
  return { ports, journal, model, newHost };
}

async function modelCalled(host: TestHost, session: SessionUid): Promise<void> {
  for await (const item of host.controller.watch({ session, fromSeq: 1 as never })) {
    if (item.kind === "record" && item.record.kind === 2) return;
  }
}

describe("cancelling a turn", () => {
  it("stops the model call and the harness, then records CANCEL and END in one append", async () => {
    const { newHost, model } = setup();
    await using host = newHost("a");
    const session = await host.createSession();
    const turn = await host.begin(session, ["hi"]);
    await modelCalled(host, session);
    const commits: number[] = [];
    host.journal.watch(session, (records) => commits.push(records.length));
    const row = await host.controller.cancel({ session, executionId: turn.executionId, reason: "USER" });
    expect(await turn.outcome).toEqual({ kind: "ended", state: "CANCELED", lastSeq: 5 });
    expect(commits).toEqual([2]);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "INPUT hi", "MODEL_CALL", "LIFECYCLE 5 USER", "END CANCELED"]);
    expect(execStateOf(row.projection, row.holder !== undefined)).toBe(ExecState.EXEC_CANCELED);
    expect(model.requests).toHaveLength(1);
  });

  it("does not wait for a harness that ignores its signal, and lets it write nothing more", async () => {
    let finish: () => void = () => undefined;
    let afterwards: unknown;
    const { newHost } = setup(
      testHarness(async (_, sink) => {
        await new Promise<void>((resolve) => (finish = resolve));
        await sink.output("too late").catch((error: unknown) => (afterwards = error));
      }),
    );
    await using host = newHost("a");
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    finish();
    await expect.poll(() => afterwards).toMatchObject({ code: "cancelled" });
    expect(await turn.outcome).toMatchObject({ state: "CANCELED" });
    expect((await host.story(session)).at(-1)).toBe("END CANCELED");
  });

  it("changes nothing where no turn is open, and refuses another turn's id", async () => {
    const { newHost } = setup();
    await using host = newHost("a");
    const session = await host.createSession();
    const row = await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect(row.projection.lastSeq).toBe(0);
    await host.begin(session, []);
    const wrong = host.controller.cancel({ session, executionId: "another", reason: "USER" });
    await expect(wrong).rejects.toMatchObject({ code: "failed_precondition", field: "execution_id" });
    const unknown = host.controller.cancel({ session: "nobody" as SessionUid, executionId: "", reason: "USER" });
    await expect(unknown).rejects.toMatchObject({ code: "not_found" });
  });

  it("reaches a turn of another host: that host is fenced and writes nothing more", async () => {
    const { newHost } = setup();
    await using owner = newHost("owner");
    await using other = newHost("other");
    const session = await owner.createSession();
    const turn = await owner.begin(session, ["hi"]);
    await modelCalled(owner, session);
    await other.controller.cancel({ session, executionId: "", reason: "INTERNAL" });
    expect((await other.story(session)).slice(-2)).toEqual(["LIFECYCLE 5 INTERNAL", "END CANCELED"]);
    await owner.controller.shutdown({ graceMs: 0 });
    expect(await turn.outcome).toMatchObject({ kind: "interrupted", error: { code: "aborted" } });
    expect((await other.story(session)).at(-1)).toBe("END CANCELED");
  });

  it("ends an interrupted turn that nobody runs", async () => {
    const { newHost } = setup(
      testHarness(async () => {
        throw new Error("broken");
      }),
    );
    await using host = newHost("a");
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    const row = await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect(row.holder).toBeUndefined();
    expect(await host.story(session)).toEqual(["EXECUTION_START", "ERROR 13", "LIFECYCLE 5 USER", "END CANCELED"]);
  });
});

describe("a deadline", () => {
  it("cancels the turn with TIMEOUT when it passes, however far away it was", async () => {
    const { newHost, ports } = setup();
    await using host = newHost("a");
    const session = await host.createSession();
    const spanMs = 40 * 24 * 3_600_000;
    const turn = await host.begin(session, [], { deadlineMs: ports.clock.nowMs() + spanMs });
    await modelCalled(host, session);
    ports.clock.advance(spanMs - 1);
    expect((await host.story(session)).at(-1)).toBe("MODEL_CALL");
    ports.clock.advance(1);
    expect(await turn.outcome).toMatchObject({ kind: "ended", state: "CANCELED" });
    expect((await host.story(session)).slice(-2)).toEqual(["LIFECYCLE 5 TIMEOUT", "END CANCELED"]);
  });

  it("is noticed soon after the clock was set past it", async () => {
    const { newHost, ports } = setup();
    let aheadMs = 0;
    const clock = {
      nowMs: () => ports.clock.nowMs() + aheadMs,
      monotonicMs: () => ports.clock.monotonicMs(),
      sleep: (ms: number, options?: { signal?: AbortSignal }) => ports.clock.sleep(ms, options),
      after: (ms: number, task: () => void) => ports.clock.after(ms, task),
    };
    await using host = newHost("a", { ports: { ...ports, clock } });
    const session = await host.createSession();
    const turn = await host.begin(session, [], { deadlineMs: ports.clock.nowMs() + 3_600_000 });
    await modelCalled(host, session);
    aheadMs = 7_200_000;
    ports.clock.advance(5_000);
    expect(await turn.outcome).toMatchObject({ kind: "ended", state: "CANCELED" });
  });

  it("leaves nothing behind when the turn ends in time", async () => {
    const { newHost, ports } = setup(testHarness(async (_, sink) => sink.output("done")));
    const host = newHost("a");
    const session = await host.createSession();
    const turn = await host.begin(session, [], { deadlineMs: ports.clock.nowMs() + 1000 });
    await turn.outcome;
    await host.controller.shutdown({ graceMs: 0 });
    expect(ports.clock.pending).toBe(0);
  });
});

describe("deleting a session", () => {
  it("cancels a running turn, records the intent and terminates compute; repeating it changes nothing", async () => {
    const { newHost } = setup();
    await using host = newHost("a");
    const session = await host.createSession();
    await host.begin(session, []);
    await modelCalled(host, session);
    const row = await host.controller.delete(session, undefined);
    expect(row.projection).toMatchObject({
      deletionState: DeletionState.DELETION_PENDING,
      computeState: ComputeState.COMPUTE_TERMINATED,
      openTurn: undefined,
    });
    expect((await host.story(session)).slice(-3)).toEqual(["LIFECYCLE 5 USER", "END CANCELED", "LIFECYCLE 6"]);
    const again = await host.controller.delete(session, undefined);
    expect(again.projection.lastSeq).toBe(row.projection.lastSeq);
  });

  it("allows no further turn, and its records can still be read", async () => {
    const { newHost } = setup();
    await using host = newHost("a");
    const session = await host.createSession();
    await host.controller.delete(session, undefined);
    await expect(host.begin(session, ["x"])).rejects.toMatchObject({ code: "failed_precondition" });
    expect(await host.story(session)).toEqual(["LIFECYCLE 6"]);
  });
});

describe("losing the lease", () => {
  it("stops the turn at the next heartbeat and writes nothing more", async () => {
    const { newHost, ports, journal } = setup();
    await using host = newHost("a");
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    await modelCalled(host, session);
    const stolen = await journal.append({
      session,
      writer: { kind: "claim", holder: "thief" as HostId, leaseMs: 60_000, takeOver: true },
      events: [],
    });
    expect(stolen.kind).toBe("appended");
    ports.clock.advance(5_000);
    expect(await turn.outcome).toMatchObject({ kind: "interrupted", error: { code: "aborted" } });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "MODEL_CALL"]);
  });

  it("does not happen to a host that goes on renewing it", async () => {
    const { newHost, ports, journal } = setup();
    await using host = newHost("a");
    const session = await host.createSession();
    await host.begin(session, []);
    await modelCalled(host, session);
    for (let beat = 0; beat < 10; beat++) {
      ports.clock.advance(5_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect((await journal.get(session))?.holder).toBe("a");
    }
  });
});

describe("shutting a host down", () => {
  it("takes no new turns, lets running ones finish, and interrupts what is left so that it can be resumed", async () => {
    const gates = new Map<string, () => void>();
    const { newHost, ports } = setup(
      testHarness(async (start, sink) => {
        await new Promise<void>((resolve) => gates.set(start.sessionUid, resolve));
        await sink.output("finished");
      }),
    );
    await using host = newHost("a");
    const [quick, stuck] = [await host.createSession(), await host.createSession()];
    const turns = [await host.begin(quick, []), await host.begin(stuck, [])];
    await expect.poll(() => gates.size).toBe(2);
    const down = host.controller.shutdown({ graceMs: 1_000 });
    gates.get(quick)?.();
    expect(await turns[0]?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    ports.clock.advance(1_000);
    await down;
    await expect(host.begin(quick, [])).rejects.toMatchObject({ code: "unavailable" });
    expect(await turns[1]?.outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" } });
    const row = await host.journal.get(stuck);
    expect(row?.holder).toBeUndefined();
    expect(row?.projection.openTurn).toBeDefined();
  });
});
