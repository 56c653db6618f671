import { describe, expect, it } from "vitest";
import { SILENT_LOG, newSessionUid, type Seq, type SessionUid } from "../base/index.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { EventKind, Lifecycle_Kind } from "../gen/agentsessions/v1/common_pb.ts";
import { ComputeState, ExecState } from "../gen/agentsessions/v1/session_pb.ts";
import { EMPTY_PROJECTION, execStateOf, project, projectionAt, type Projection } from "../journal/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { emptySeed, seededPorts, testHarness, TestHost, TestModel } from "../testing/index.ts";

function setup() {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const harness = testHarness(async (start, sink) => {
    const response = await sink.model({ model: "test", messages: start.inputs });
    await sink.usage(response.usage);
  });
  const model = new TestModel();
  const host = new TestHost({ journal, ports, harnesses: { test: harness }, models: model });
  const fork = async (parent: SessionUid, atSeq: number, count = 1) =>
    host.controller.fork({
      parent,
      atSeq: atSeq as Seq,
      children: () => Array.from({ length: count }, () => emptySeed(newSessionUid(ports), ports.clock.nowMs())),
    });
  return { ports, journal, host, model, fork };
}

describe("forking a session", () => {
  it("shares the prefix hash for hash and fence for fence, and begins with a FORK marker under a higher fence", async () => {
    const { host, fork } = setup();
    const parent = await host.createSession();
    for (const input of ["a", "b"]) await (await host.begin(parent, [input])).outcome;
    const rows = await fork(parent, 6, 3);
    const own = await host.records(parent);
    for (const row of rows) {
      const records = await host.records(row.seed.uid);
      expect(records.slice(0, 6)).toEqual(own.slice(0, 6));
      expect(records).toHaveLength(7);
      expect(records[6]).toMatchObject({ seq: 7n, prevHash: own[5]?.contentHash, fence: 3n });
      expect(records[6]?.event?.body.value).toMatchObject({ kind: Lifecycle_Kind.LIFECYCLE_FORK });
      expect(row).toMatchObject({ parent: { uid: parent, forkSeq: 6 }, projection: { computeState: ComputeState.COMPUTE_NONE } });
    }
  });

  it("forks at the head for 0, and not past it, nor an empty or unknown session", async () => {
    const { host, fork } = setup();
    const parent = await host.createSession();
    await expect(fork(parent, 0)).rejects.toMatchObject({ code: "failed_precondition" });
    await (
      await host.begin(parent, ["a"])
    ).outcome;
    expect((await fork(parent, 0))[0]?.parent?.forkSeq).toBe(6);
    await expect(fork(parent, 7)).rejects.toMatchObject({ code: "failed_precondition", field: "at_seq" });
    await expect(fork("nobody" as SessionUid, 1)).rejects.toMatchObject({ code: "not_found" });
  });

  it("inside a turn: the child waits, resumes with what is recorded, and asks a model call without completion once more", async () => {
    const { host, fork, model } = setup();
    const parent = await host.createSession();
    await (
      await host.begin(parent, ["a"])
    ).outcome;
    for (const atSeq of [1, 2, 3, 4, 5]) {
      const [child] = await fork(parent, atSeq);
      expect(execStateOf(child!.projection, false)).toBe(ExecState.EXEC_AWAITING);
      const resume = host.controller.resume(child!.seed.uid, undefined);
      if (atSeq === 1) {
        await expect(resume).rejects.toThrow(/says 1 inputs, the journal has 0/);
        continue;
      }
      expect(await (await resume).turn?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
      const story = (await host.story(child!.seed.uid)).filter((line) => !line.startsWith("LIFECYCLE"));
      expect(story).toEqual(["EXECUTION_START", "INPUT a", "MODEL_CALL", "OUTPUT hello", "USAGE", "END COMPLETED"]);
    }
    expect(model.requests).toHaveLength(3);
  });

  it("gives a child the projection that folding its prefix gives, at every seq", async () => {
    const { host, journal } = setup();
    const parent = await host.createSession();
    for (let turn = 0; turn < 60; turn++) await (await host.begin(parent, [`${turn}`])).outcome;
    const row = await journal.get(parent);
    let folded: Projection = EMPTY_PROJECTION;
    for await (const page of journal.read({ session: parent })) {
      for (const record of page) {
        folded = project(folded, record.seq, record.contentHash, decodeLogRecord(record.bytes).event!);
        expect(await projectionAt(journal, row!, record.seq)).toEqual(folded);
      }
    }
  });

  it("goes on apart from its parent, also when that is deleted, and down a hundred generations", async () => {
    const { host, fork } = setup();
    let session = await host.createSession();
    await (
      await host.begin(session, ["a"])
    ).outcome;
    const first = session;
    for (let depth = 0; depth < 100; depth++) session = (await fork(session, 0))[0]!.seed.uid;
    await host.controller.delete(first, undefined);
    await (
      await host.begin(session, ["z"])
    ).outcome;
    const records = await host.records(session);
    expect(records).toHaveLength(6 + 100 + 6);
    for (const [index, record] of records.entries()) expect(record.prevHash).toBe(records[index - 1]?.contentHash ?? "");
    expect(records.filter(({ event }) => event?.kind === EventKind.EVENT_LIFECYCLE)).toHaveLength(100);
    await expect(fork(first, 1)).rejects.toMatchObject({ code: "failed_precondition" });
  });
});
