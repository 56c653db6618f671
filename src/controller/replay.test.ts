import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { SILENT_LOG, type SessionUid } from "../base/index.ts";
import { UsageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { HarnessFailure, textMessage, type Harness } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { harnessCatalog, seededPorts, silent, testHarness, TestHost, TestModel, type HarnessRun } from "../testing/index.ts";
import { replaySession, type TurnCheck } from "./index.ts";

const asks: HarnessRun = async (start, sink) => {
  const response = await sink.model({ model: "test", messages: start.inputs });
  await sink.usage(response.usage);
  await sink.output("bye");
};

function setup(run: HarnessRun, model = new TestModel()) {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const host = new TestHost({ journal, ports, harnesses: { test: testHarness(run) }, models: model });
  const check = async (session: SessionUid, harness: Harness = testHarness(run)): Promise<TurnCheck[]> => {
    const row = await journal.get(session);
    if (row === undefined) throw new Error("no such session");
    return Array.fromAsync(replaySession({ journal, harnesses: harnessCatalog({ test: harness }), ports }, { row }));
  };
  return { ports, journal, host, model, check };
}

describe("replaying a session as a check", () => {
  it("runs every ended turn again, calls nothing and writes nothing (I1)", async () => {
    const { host, check, model } = setup(asks);
    const session = await host.createSession();
    for (const input of ["a", "b", "c"]) await (await host.begin(session, [input])).outcome;
    const before = await host.journal.get(session);
    const checks = await check(session);
    expect(checks.map(({ startSeq, lastSeq, end, outcome }) => [startSeq, lastSeq, end, outcome])).toEqual([
      [1, 7, "COMPLETED", { kind: "same", effects: 3 }],
      [8, 14, "COMPLETED", { kind: "same", effects: 3 }],
      [15, 21, "COMPLETED", { kind: "same", effects: 3 }],
    ]);
    expect(model.requests).toHaveLength(3);
    expect(await host.journal.get(session)).toEqual(before);
  });

  it("gives the harness the same start: history, inputs, config, cursor", async () => {
    const starts: unknown[] = [];
    const { host, check } = setup(async (start, sink) => {
      const history: string[] = [];
      for await (const page of start.history.read()) history.push(...page.events.map(({ body }) => body.case ?? ""));
      const { executionId, config, inputs, resumeFromSeq, model } = start;
      starts.push({ executionId, config, inputs, resumeFromSeq, model, history });
      await sink.output("x");
    });
    const session = await host.createSession();
    await (
      await host.begin(session, ["a"], { config: new Uint8Array([1]), resumeFromSeq: 7n })
    ).outcome;
    await (
      await host.begin(session, ["b"])
    ).outcome;
    const live = starts.splice(0);
    await check(session);
    expect(starts).toEqual(live);
  });

  const divergences: [string, HarnessRun, { seq: number; reason: RegExp }][] = [
    [
      "another request",
      async (s, sink) => void (await sink.model({ model: "test", messages: [...s.inputs, ...s.inputs] })),
      { seq: 3, reason: /request differs/ },
    ],
    [
      "another model",
      async (s, sink) => void (await sink.model({ model: "other", messages: s.inputs })),
      { seq: 3, reason: /another model/ },
    ],
    ["another kind of effect", async (_, sink) => sink.output("bye"), { seq: 3, reason: /an output where a model call is recorded/ }],
    [
      "an early end",
      async (s, sink) => void (await sink.model({ model: "test", messages: s.inputs })),
      { seq: 5, reason: /ended, but usage/ },
    ],
    [
      "more than is recorded",
      async (s, sink, o) => asks(s, sink, o).then(() => sink.output("again")),
      { seq: 7, reason: /after the last recorded effect/ },
    ],
    ["a throw", async (s, sink, o) => asks(s, sink, o).then(() => Promise.reject(new Error("x"))), { seq: 7, reason: /threw; COMPLETED/ }],
    [
      "other usage",
      async (s, sink) => sink.model({ model: "test", messages: s.inputs }).then(() => sink.usage(create(UsageSchema))),
      { seq: 5, reason: /usage differs/ },
    ],
  ];
  it.each(divergences)("reports the first divergence: %s", async (_, run, expected) => {
    const { host, check } = setup(asks);
    const session = await host.createSession();
    await (
      await host.begin(session, ["a"])
    ).outcome;
    const [turn] = await check(session, testHarness(run));
    expect(turn?.outcome).toMatchObject({ kind: "diverged", divergence: { seq: expected.seq } });
    if (turn?.outcome.kind === "diverged") expect(turn.outcome.divergence.reason).toMatch(expected.reason);
  });

  it("is not fooled by a harness that catches everything", async () => {
    const { host, check, model } = setup(asks);
    const session = await host.createSession();
    await (
      await host.begin(session, ["a"])
    ).outcome;
    const stubborn = testHarness(async (start, sink) => {
      await sink.model({ model: "test", messages: [textMessage("user", "z")] }).catch(() => undefined);
      await sink.model({ model: "test", messages: start.inputs }).catch(() => undefined);
    });
    expect((await check(session, stubborn))[0]?.outcome).toMatchObject({ kind: "diverged", divergence: { seq: 3 } });
    expect(model.requests).toHaveLength(1);
  });

  it("fails a turn the way it failed, and stops one where it was cancelled", async () => {
    const failing = setup(async (_, sink) => {
      await sink.output("no");
      throw new HarnessFailure(3, "cannot");
    });
    const failed = await failing.host.createSession();
    await (
      await failing.host.begin(failed, [])
    ).outcome;
    expect((await failing.check(failed))[0]).toMatchObject({ end: "FAILED", outcome: { kind: "same" } });

    const cancelling = setup(asks, new TestModel(silent));
    const cancelled = await cancelling.host.createSession();
    const turn = await cancelling.host.begin(cancelled, ["a"]);
    await expect.poll(() => cancelling.model.requests.length).toBe(1);
    await cancelling.host.controller.cancel({ session: cancelled, executionId: turn.executionId, reason: "USER" });
    expect((await cancelling.check(cancelled))[0]).toMatchObject({ end: "CANCELED", outcome: { kind: "same" } });
    expect(cancelling.model.requests).toHaveLength(1);
  });

  it("does not wait for a harness that waits, nor for one that ignores its signal", async () => {
    const waiting: HarnessRun = async (_, sink, { signal }) => {
      await sink.output("x");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    };
    const deaf: HarnessRun = async (_, sink) => {
      await sink.output("x");
      await new Promise<never>(() => undefined);
    };
    for (const run of [waiting, deaf]) {
      const { host, check } = setup(run);
      const session = await host.createSession();
      await host.begin(session, []);
      await expect.poll(() => host.story(session)).toContain("OUTPUT x");
      await host.controller.cancel({ session, executionId: "", reason: "USER" });
      expect((await check(session))[0]).toMatchObject({ end: "CANCELED", outcome: { kind: "same" } });
    }
  });

  it("ends when its caller does, whatever the harness waits for", async () => {
    const { host, journal, ports } = setup(async (_, sink) => sink.output("x"));
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    const deaf = testHarness(async () => new Promise<never>(() => undefined));
    const stop = new AbortController();
    const row = await journal.get(session);
    const checks = replaySession({ journal, harnesses: harnessCatalog({ test: deaf }), ports }, { row: row!, signal: stop.signal });
    const first = checks.next();
    stop.abort(new Error("gone"));
    await expect(first).rejects.toThrow("gone");
  });

  it("compares how a failed turn failed", async () => {
    const fail =
      (code: number, words: string): HarnessRun =>
      async () => {
        throw new HarnessFailure(code, words);
      };
    const { host, check } = setup(fail(9, "no model"));
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect((await check(session))[0]?.outcome.kind).toBe("same");
    for (const run of [fail(3, "no model"), fail(9, "another")]) {
      expect((await check(session, testHarness(run)))[0]?.outcome.kind).toBe("diverged");
    }
  });

  it("takes a recorded number that is no error's for what it is told as by now", async () => {
    const older = Object.assign(new HarnessFailure(9, "no model"), { grpcCode: 0 });
    const { host, check } = setup(() => Promise.reject(older));
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    const failing = (code: number) => testHarness(() => Promise.reject(new HarnessFailure(code, "no model")));
    expect((await check(session, failing(0)))[0]?.outcome.kind).toBe("same");
    expect((await check(session, failing(9)))[0]?.outcome.kind).toBe("diverged");
  });

  it("passes over turns without END, and refuses what its harness is missing for", async () => {
    let broken = true;
    const { host, check, journal, ports } = setup(async (_, sink) => {
      if (broken) throw new Error("x");
      await sink.output("y");
    });
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    broken = false;
    await (
      await host.begin(session, [])
    ).outcome;
    expect((await check(session)).map(({ startSeq }) => startSeq)).toEqual([3]);
    const row = await journal.get(session);
    const checks = await Array.fromAsync(replaySession({ journal, harnesses: harnessCatalog({}), ports }, { row: row! }));
    expect(checks[0]?.outcome).toMatchObject({ kind: "refused", error: { code: "failed_precondition" } });
  });
});
