import { describe, expect, it } from "vitest";
import { HoldfastError, SILENT_LOG, newSessionUid, type Seq, type SessionUid } from "../base/index.ts";
import { ComputeState, ExecState } from "../gen/agentsessions/v1/session_pb.ts";
import { execStateOf, sessionOf, type JournalStore } from "../journal/index.ts";
import { createHarnessCatalog, createPlacedHarness } from "../placement/index.ts";
import { describeHarness, HarnessFailure, Resumability, type BlobStore, type HarnessDescriptor } from "../spi/index.ts";
import { createMemoryBlobStore } from "../stores/blobs/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { emptySeed, MemoryRuntime, seededPorts, TestHost, TestModel, testHarness, type RunWithMemory } from "../testing/index.ts";
import { replaySession } from "./replay.ts";

const COUNTER = describeHarness({
  id: "counter",
  version: "1",
  capabilities: { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT, forkSafe: true },
});

/** Counts its turns in memory and says the count before and after a model call. */
const count: RunWithMemory = async (memory, start, sink) => {
  memory["count"] = Number(memory["count"] ?? 0) + 1;
  await sink.output(`count ${String(memory["count"])}`);
  await sink.model({ model: "test", messages: start.inputs });
};

interface Setup {
  readonly run?: RunWithMemory;
  readonly describe?: () => HarnessDescriptor;
  readonly idle?: { readonly pauseAfterMs?: number; readonly suspendAfterMs?: number };
}

function world(setup: Setup = {}) {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const captures = createMemoryBlobStore(ports);
  const host = (hostId = "one", model = new TestModel()) => {
    const runtime = new MemoryRuntime({ describe: setup.describe ?? (() => COUNTER), run: setup.run ?? count, captures });
    const entry = createPlacedHarness({ name: "test", source: "static", runtime, sandboxed: true });
    const idle = setup.idle;
    return {
      runtime,
      entry,
      model,
      host: new TestHost({ journal, ports, harnesses: {}, placed: [entry], models: model, hostId, idle }),
    };
  };
  return { ports, journal, captures, host };
}

const removeAll = async (captures: BlobStore) => {
  for await (const blob of captures.list()) await captures.delete(blob);
};

const rowOf = async (journal: JournalStore, session: SessionUid) => {
  const row = await journal.get(session);
  if (row === undefined) throw new Error("no such session");
  return row;
};

const turn = async (host: TestHost, session: SessionUid) => {
  const outcome = await (await host.begin(session, ["go"])).outcome;
  const outputs = (await host.story(session)).filter((line) => line.startsWith("OUTPUT count"));
  return { outcome, said: outputs.at(-1) };
};

const codeOf = async (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "none",
    (error: unknown) => (error instanceof HoldfastError ? error.code : String(error)),
  );

describe("a session whose harness keeps state in memory", () => {
  it("goes on from turn to turn in one incarnation, under one fence", async () => {
    const { host: start, journal } = world();
    const { host, runtime } = start();
    const session = await host.createSession();
    expect((await turn(host, session)).said).toBe("OUTPUT count 1");
    const first = await rowOf(journal, session);
    expect((await turn(host, session)).said).toBe("OUTPUT count 2");
    const second = await rowOf(journal, session);
    expect(second.fence).toBe(first.fence);
    expect(runtime.calls).toEqual(["create", "checkpoint", "checkpoint"]);
    expect(sessionOf(second)).toMatchObject({
      computeState: ComputeState.COMPUTE_LIVE,
      compute: { runtime: "memory", worker: "here", snapshot: { memory: true }, capabilities: { memorySnapshot: true } },
    });
  });

  it("is freed by Suspend and restored by the next Exec, RESUME and start in one append", async () => {
    const { host: start, journal } = world();
    const { host, runtime } = start();
    const session = await host.createSession();
    await turn(host, session);
    const cold = await host.controller.suspend(session, undefined);
    expect(cold.projection.computeState).toBe(ComputeState.COMPUTE_COLD);
    expect(cold.projection.snapshot).toMatchObject({ memory: true });
    expect(runtime.living).toBe(0);
    expect((await turn(host, session)).said).toBe("OUTPUT count 2");
    expect((await host.story(session)).slice(-7, -4)).toEqual(["LIFECYCLE 2", "EXECUTION_START", "INPUT go"]);
    expect((await rowOf(journal, session)).projection.computeState).toBe(ComputeState.COMPUTE_LIVE);
  });

  it("is woken by Resume, on another host too", async () => {
    const { host: start, journal } = world();
    const one = start("one");
    const session = await one.host.createSession();
    await turn(one.host, session);
    await one.host.controller.suspend(session, undefined);
    const two = start("two");
    const { row } = await two.host.controller.resume(session, undefined);
    expect(row.projection.computeState).toBe(ComputeState.COMPUTE_LIVE);
    expect(two.runtime.calls).toEqual(["restore"]);
    expect((await turn(two.host, session)).said).toBe("OUTPUT count 2");
    expect(two.runtime.calls).toEqual(["restore", "checkpoint"]);
    expect((await rowOf(journal, session)).holder).toBeUndefined();
  });

  it("stays cold where it cannot be restored, with nothing written", async () => {
    const { host: start, journal, captures } = world();
    const { host } = start();
    const session = await host.createSession();
    await turn(host, session);
    const cold = await host.controller.suspend(session, undefined);
    await removeAll(captures);
    expect(await codeOf(host.controller.resume(session, undefined))).toBe("failed_precondition");
    const row = await rowOf(journal, session);
    expect(row.projection).toMatchObject({ computeState: ComputeState.COMPUTE_COLD, lastSeq: cold.projection.lastSeq });
    expect(row.holder).toBeUndefined();
  });

  it("goes on from its last settled turn when its sandbox died", async () => {
    const { host: start } = world();
    const { host, runtime } = start();
    const session = await host.createSession();
    await turn(host, session);
    await turn(host, session);
    runtime.kill();
    expect((await turn(host, session)).said).toBe("OUTPUT count 3");
  });

  it("may be suspended though its sandbox died: it is what its last settled turn left", async () => {
    const { host: start } = world();
    const { host, runtime } = start();
    const session = await host.createSession();
    await turn(host, session);
    runtime.kill();
    const cold = await host.controller.suspend(session, undefined);
    expect(cold.projection).toMatchObject({ computeState: ComputeState.COMPUTE_COLD, snapshot: { memory: true } });
    expect(runtime.calls).not.toContain("snapshot external");
    expect((await turn(host, session)).said).toBe("OUTPUT count 2");
  });

  it("counts a turn once that was cut off and resumed, wherever it was cut off", async () => {
    const { host: start, journal } = world();
    const one = start("one");
    const session = await one.host.createSession();
    await turn(one.host, session);
    const stuck = start("two", new TestModel(() => hanging()));
    const running = await stuck.host.begin(session, ["go"]);
    await stuck.host.controller.shutdown({ graceMs: 0 });
    expect((await running.outcome).kind).toBe("interrupted");
    const three = start("three");
    const { turn: resumed } = await three.host.controller.resume(session, undefined);
    expect(await resumed?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect((await three.host.story(session)).filter((line) => line.startsWith("OUTPUT count"))).toEqual([
      "OUTPUT count 1",
      "OUTPUT count 2",
    ]);
    expect((await turn(three.host, session)).said).toBe("OUTPUT count 3");
    expect(execStateOf((await rowOf(journal, session)).projection, false)).toBe(ExecState.EXEC_COMPLETED);
  });

  it("has no trace of a turn that was cancelled", async () => {
    const { host: start } = world();
    const { host, runtime, model } = start("one", new TestModel((request) => (request.messages.length > 1 ? hanging() : answering())));
    const session = await host.createSession();
    await turn(host, session);
    const running = await host.begin(session, ["go", "and wait"]);
    while (model.requests.length < 2) await new Promise((resolve) => setImmediate(resolve));
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    await running.outcome;
    expect((await turn(host, session)).said).toBe("OUTPUT count 2");
    expect(runtime.calls).toContain("restore");
  });

  it("is interrupted where its memory cannot be captured: an END is never without the memory that it ended with", async () => {
    const { host: start } = world();
    const { host, runtime } = start();
    runtime.checkpoint = async () => {
      throw new HoldfastError("unavailable", "storage: it is full");
    };
    const session = await host.createSession();
    const { outcome } = await turn(host, session);
    expect(outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" } });
    expect((await host.story(session)).at(-1)).toBe("ERROR 14");
  });

  it("fails for good where its harness says so, also when its sandbox is gone with it", async () => {
    let isFatal = false;
    const { host: start } = world({
      run: async (memory, begun, sink, options) => {
        if (isFatal) throw new HarnessFailure(8, "it used too much");
        await count(memory, begun, sink, options);
      },
    });
    const { host, runtime } = start();
    const session = await host.createSession();
    await turn(host, session);
    isFatal = true;
    runtime.checkpoint = async () => {
      throw new HoldfastError("unavailable", "sandbox: it is gone");
    };
    expect((await turn(host, session)).outcome).toMatchObject({ kind: "ended", state: "FAILED" });
    isFatal = false;
    Reflect.deleteProperty(runtime, "checkpoint");
    expect((await turn(host, session)).said).toBe("OUTPUT count 2");
  });

  it("is refused where the runtime captures no memory, before anything is written", async () => {
    const { ports, journal } = world();
    const host = new TestHost({
      journal,
      ports,
      harnesses: { test: { ...testHarness(async () => undefined), describe: async () => COUNTER } },
    });
    const session = await host.createSession();
    expect(await codeOf(host.begin(session, ["go"]))).toBe("failed_precondition");
    expect((await rowOf(journal, session)).projection.lastSeq).toBe(0);
  });

  it("frees its sandbox when it is deleted", async () => {
    const { host: start } = world();
    const { host, runtime } = start();
    const session = await host.createSession();
    await turn(host, session);
    await host.controller.delete(session, undefined);
    expect(runtime.living).toBe(0);
  });

  it("runs a turn with the harness as it is now, and its start tells so; an interrupted one goes on with no other", async () => {
    let version = "1";
    const { host: start } = world({ describe: () => describeHarness({ ...COUNTER, version }) });
    const { host, model } = start("one", new TestModel((request) => (request.messages.length > 1 ? hanging() : answering())));
    const session = await host.createSession();
    await turn(host, session);
    version = "2";
    expect((await turn(host, session)).said).toBe("OUTPUT count 2");
    const versions = (await host.records(session)).flatMap(({ event }) =>
      event?.body.case === "executionStart" ? [event.body.value.harnessVersion] : [],
    );
    expect(versions).toEqual(["1", "2"]);
    const running = await host.begin(session, ["go", "and wait"]);
    while (model.requests.length < 3) await new Promise((resolve) => setImmediate(resolve));
    await host.controller.shutdown({ graceMs: 0 });
    expect((await running.outcome).kind).toBe("interrupted");
    version = "3";
    const later = start("two").host;
    expect(await codeOf(later.controller.resume(session, undefined))).toBe("failed_precondition");
    expect((await turn(later, session)).said).toBe("OUTPUT count 3");
  });

  it("replays with the memory that it had, in a sandbox of its own", async () => {
    const { host: start, journal, ports } = world();
    const { host, runtime, entry } = start();
    const session = await host.createSession();
    for (let index = 0; index < 3; index++) await turn(host, session);
    const harnesses = createHarnessCatalog({}, [entry]);
    const kinds: string[] = [];
    for await (const { outcome } of replaySession({ journal, harnesses, ports }, { row: await rowOf(journal, session) }))
      kinds.push(outcome.kind);
    expect(kinds).toEqual(["same", "same", "same"]);
    expect(runtime.living).toBe(1);
    expect((await turn(host, session)).said).toBe("OUTPUT count 4");
  });
});

describe("forking it", () => {
  const forked = async (childCount: number) => {
    const { host: start, journal, ports, captures } = world();
    const { host, runtime } = start();
    const session = await host.createSession();
    for (let index = 0; index < 3; index++) await turn(host, session);
    const fork = (atSeq = 0) =>
      host.controller.fork({
        parent: session,
        atSeq: atSeq as Seq,
        children: () => Array.from({ length: childCount }, () => emptySeed(newSessionUid(ports), ports.clock.nowMs())),
      });
    return { host, runtime, session, fork, journal, captures };
  };

  it("clones one snapshot for all children, which go on independently", async () => {
    const { host, runtime, session, fork, journal } = await forked(8);
    const children = (await fork()).map(({ seed }) => seed.uid);
    expect(runtime.calls.filter((call) => call.startsWith("snapshot"))).toEqual(["snapshot external"]);
    expect((await rowOf(journal, session)).projection.computeState).toBe(ComputeState.COMPUTE_COLD);
    expect((await host.story(session)).at(-1)).toBe("LIFECYCLE 1");
    for (const [index, child] of children.entries()) {
      for (let more = 0; more <= index; more++) expect((await turn(host, child)).said).toBe(`OUTPUT count ${4 + more}`);
    }
    expect((await turn(host, session)).said).toBe("OUTPUT count 4");
    expect(runtime.calls.filter((call) => call === "fork")).toHaveLength(8);
  });

  it("is possible at the head only", async () => {
    const { fork, session, journal } = await forked(1);
    const { lastSeq } = (await rowOf(journal, session)).projection;
    expect(await codeOf(fork(lastSeq - 1))).toBe("failed_precondition");
    expect((await rowOf(journal, session)).projection.lastSeq).toBe(lastSeq);
    expect(await fork(lastSeq)).toHaveLength(1);
  });

  it("says so when the snapshot of a child is gone", async () => {
    const { host, fork, captures } = await forked(1);
    const [child] = await fork();
    await removeAll(captures);
    expect((await turn(host, child?.seed.uid as SessionUid)).outcome).toMatchObject({ kind: "interrupted", error: { code: "aborted" } });
  });
});

describe("an idle session", () => {
  const settled = async () => {
    for (let round = 0; round < 50; round++) await new Promise((resolve) => setImmediate(resolve));
  };

  it("goes warm, then cold, and comes back from either", async () => {
    const { host: start, journal, ports } = world({ idle: { pauseAfterMs: 1_000, suspendAfterMs: 5_000 } });
    const { host, runtime } = start();
    const session = await host.createSession();
    const stateOf = async () => (await rowOf(journal, session)).projection.computeState;
    await turn(host, session);
    ports.clock.advance(1_000);
    await settled();
    expect(await stateOf()).toBe(ComputeState.COMPUTE_WARM);
    expect((await turn(host, session)).said).toBe("OUTPUT count 2");
    expect(await stateOf()).toBe(ComputeState.COMPUTE_LIVE);
    ports.clock.advance(1_000);
    await settled();
    ports.clock.advance(4_000);
    await settled();
    expect(await stateOf()).toBe(ComputeState.COMPUTE_COLD);
    expect(runtime.living).toBe(0);
    expect((await turn(host, session)).said).toBe("OUTPUT count 3");
  });

  it("that was warm goes on from its last turn when its sandbox dies, wherever it is asked next", async () => {
    const { host: start, ports, journal } = world({ idle: { pauseAfterMs: 1_000 } });
    const one = start("one");
    const session = await one.host.createSession();
    await turn(one.host, session);
    ports.clock.advance(1_000);
    await settled();
    expect((await rowOf(journal, session)).projection.computeState).toBe(ComputeState.COMPUTE_WARM);
    one.runtime.kill();
    const two = start("two");
    expect((await turn(two.host, session)).said).toBe("OUTPUT count 2");
    ports.clock.advance(1_000);
    await settled();
    two.runtime.kill();
    await two.host.controller.suspend(session, undefined);
    expect((await turn(start("three").host, session)).said).toBe("OUTPUT count 3");
  });

  it("is left alone while a turn of it runs", async () => {
    const { host: start, journal, ports } = world({ idle: { suspendAfterMs: 1_000 } });
    const { host } = start("one", new TestModel((request) => (request.messages.length > 1 ? hanging() : answering())));
    const session = await host.createSession();
    await turn(host, session);
    await host.begin(session, ["go", "and wait"]);
    ports.clock.advance(2_000);
    await settled();
    expect((await rowOf(journal, session)).projection.computeState).toBe(ComputeState.COMPUTE_LIVE);
  });
});

async function* answering() {
  yield* new TestModel().complete({ model: "test", messages: [] }, { signal: new AbortController().signal });
}

async function* hanging(): AsyncGenerator<never, void, undefined> {
  await new Promise<never>(() => undefined);
}
