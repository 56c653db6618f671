import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { hostIdOf, newSessionUid, SILENT_LOG } from "../base/index.ts";
import { ComputeRefSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import type { ComputeRef } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { DyingStore, emptySeed, harnessCatalog, seededPorts, testHarness, TestHost, TestModel, type HarnessRun } from "../testing/index.ts";
import { createController } from "./index.ts";

describe("the pen of a turn that can write no more", () => {
  it("says so to a harness that only ever puts out text: it does not go on for ever", async () => {
    const ports = seededPorts();
    const sound = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    let outputs = 0;
    const talker = testHarness(async (_, sink) => {
      for (;;) {
        await sink.output("more");
        outputs += 1;
      }
    });
    const dying = new DyingStore(sound, { atAppend: 5, when: "before" });
    const host = new TestHost({ journal: dying.view(), ports, harnesses: { test: talker }, limits: { turnRecordsMax: 1_000_000 } });
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    expect(await turn.outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" } });
    expect(outputs).toBeLessThan(200);
  });
});

describe("the pen of a turn whose harness is elsewhere", () => {
  /** Runs one turn; the appends that its store got, by how many events each had. */
  async function appendsOf(run: HarnessRun, place: ComputeRef | undefined, ports = seededPorts()): Promise<number[]> {
    const sound = createMemoryStore({ ...ports, log: SILENT_LOG });
    const appends: number[] = [];
    const append: JournalStore["append"] = (request) => (appends.push(request.events.length), sound.append(request));
    const journal: JournalStore = new Proxy(sound, {
      get: (store, name) => {
        const member: unknown = name === "append" ? append : Reflect.get(store, name, store);
        return typeof member === "function" ? (member.bind(store) as unknown) : member;
      },
    });
    const catalog = harnessCatalog({ test: testHarness(run) });
    const found = catalog.find("test");
    if (found === undefined) throw new Error("no such harness");
    const entry = { ...found, attach: async () => ({ harness: testHarness(run), compute: place }) };
    const harnesses = { names: () => ["test"], find: () => entry };
    const models = new TestModel();
    await using controller = createController({ journal, harnesses, models, ports, log: SILENT_LOG, hostId: hostIdOf("h") });
    const uid = newSessionUid(ports);
    await journal.create(emptySeed(uid, 0));
    const row = await journal.get(uid);
    if (row === undefined) throw new Error("no such session");
    const invocation = { inputs: [], caller: undefined, harness: "", config: new Uint8Array(), resumeFromSeq: 0n };
    const plan = await controller.plan(row, { ...invocation, expectedLastSeq: undefined, deadlineMs: undefined });
    const turn = await controller.begin(uid, plan);
    expect(await turn.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    return appends;
  }

  /** Answers as a process of its own does: not at once, but soon. */
  const soon: HarnessRun = async (start, sink) => {
    const { usage } = await sink.model({ model: "test", messages: start.inputs });
    await new Promise((resolve) => setImmediate(resolve));
    await sink.usage(usage);
  };
  const elsewhere = create(ComputeRefSchema, { runtime: "process" });

  it("lets a completion wait a moment for what follows from it: both are one append", async () => {
    expect(await appendsOf(soon, elsewhere)).toEqual([1, 1, 3]);
    expect(await appendsOf(soon, undefined)).toEqual([1, 1, 1, 1, 1]);
  });

  it("does not let it wait longer", async () => {
    const ports = seededPorts();
    const late: HarnessRun = async (start, sink) => {
      await sink.model({ model: "test", messages: start.inputs });
      ports.clock.advance(1);
      await sink.output("after a while");
    };
    expect(await appendsOf(late, elsewhere, ports)).toEqual([1, 1, 1, 2]);
  });
});
