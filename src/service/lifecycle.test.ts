import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG, type HoldfastError } from "../base/index.ts";
import {
  ComputeState,
  ForkRequestSchema,
  GetSessionRequestSchema,
  ResumeRequestSchema,
  SuspendRequestSchema,
} from "../gen/agentsessions/v1/session_pb.ts";
import { IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { CheckReplayRequestSchema, TurnCheck_Outcome } from "../gen/holdfast/v1/replay_pb.ts";
import { messageText, textMessage } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { DyingStore, harnessCatalog, seededPorts, testHarness, TestHost, TestModel, type HarnessRun } from "../testing/index.ts";
import { ALLOW_ALL } from "./access.ts";
import type { CallContext } from "./contract.ts";
import { createJournalService } from "./journal.ts";
import { createSessionsService } from "./sessions.ts";

const speak: HarnessRun = async (start, sink) => {
  await sink.model({ model: "test", messages: [textMessage("system", "be kind"), ...start.inputs] });
};
const rude: HarnessRun = async (start, sink) => {
  await sink.model({ model: "test", messages: [textMessage("system", "be rude"), ...start.inputs] });
};

function bench(dead = false) {
  const ports = seededPorts(3);
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const harnesses = { test: testHarness(speak), rude: testHarness(rude) };
  const model = new TestModel();
  const view = dead ? new DyingStore(journal, { atAppend: 2, when: "after" }).view() : journal;
  const first = new TestHost({ journal: view, ports, harnesses, models: model, hostId: "first" });
  const host = new TestHost({ journal, ports, harnesses, models: model, hostId: "second" });
  onTestFinished(() => host[Symbol.asyncDispose]());
  const shared = { journal, controller: host.controller, harnesses: harnessCatalog(harnesses), authorizer: ALLOW_ALL, ports };
  const sessions = createSessionsService({ ...shared, defaults: { harness: "test", model: "test" } });
  return { first, host, ports, model, sessions, reader: createJournalService(shared) };
}

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };
const forkOf = (session: string, more: MessageInitShape<typeof ForkRequestSchema>) =>
  create(ForkRequestSchema, { session, count: 1, ...more });

describe("Fork", () => {
  it("makes children that inherit what the contract says, and lists them", async () => {
    const { host, sessions } = bench();
    const identity = create(IdentityRefSchema, { principal: "agent://a" });
    const parent = await host.createSession({ project: "p", model: "m", labels: { own: "1" }, annotations: { note: "n" }, identity });
    await (
      await host.begin(parent, ["a"])
    ).outcome;
    const request = forkOf(parent, { atSeq: 0n, count: 2, childNames: ["left", ""], labels: { branch: "x" } });
    const { children } = await sessions.fork(request, context);
    expect(children.map(({ metadata, parentUid, forkSeq }) => [metadata?.name, metadata?.project, parentUid, forkSeq])).toEqual([
      ["left", "p", parent, 5n],
      ["", "p", parent, 5n],
    ]);
    const [left] = children;
    expect(left).toMatchObject({ model: "m", harness: "test", labels: { branch: "x" }, annotations: { note: "n" }, lastSeq: 6n });
    expect(left?.identity).toBeUndefined();
    await expect(sessions.fork(request, context)).rejects.toMatchObject({ code: "already_exists", field: "child_names" });
  });

  const wrong: [string, MessageInitShape<typeof ForkRequestSchema>, HoldfastError["code"]][] = [
    ["count", { count: 0 }, "invalid_argument"],
    ["count", { count: 129 }, "invalid_argument"],
    ["count", { count: -1 }, "invalid_argument"],
    ["at_seq", { atSeq: -1n }, "invalid_argument"],
    ["at_seq", { atSeq: 99n }, "failed_precondition"],
    ["identity", { identity: create(IdentityRefSchema) }, "invalid_argument"],
    ["child_names", { count: 2, childNames: ["one"] }, "invalid_argument"],
    ["child_names", { count: 2, childNames: ["one", "one"] }, "invalid_argument"],
    ["child_names[1]", { count: 2, childNames: ["one", "t\u0000wo"] }, "invalid_argument"],
  ];
  it.each(wrong)("refuses a wrong %s: %o", async (field, more, code) => {
    const { host, sessions } = bench();
    const parent = await host.createSession();
    await (
      await host.begin(parent, ["a"])
    ).outcome;
    await expect(sessions.fork(forkOf(parent, more), context)).rejects.toMatchObject({ code, field });
    expect((await host.journal.list({ parent, limit: 10 })).rows).toEqual([]);
  });
});

describe("Suspend and Resume", () => {
  it("bring a session to COLD and back", async () => {
    const { host, sessions } = bench();
    const session = await host.createSession();
    const cold = await sessions.suspend(create(SuspendRequestSchema, { session }), context);
    expect(cold.computeState).toBe(ComputeState.COMPUTE_COLD);
    expect(cold.compute?.snapshot).toMatchObject({ local: session, memory: false });
    const live = await sessions.resume(create(ResumeRequestSchema, { session }), context);
    expect(live.computeState).toBe(ComputeState.COMPUTE_LIVE);
  });

  it("resolves once the interrupted turn has gone on to its end", async () => {
    const { first, host, ports, sessions } = bench(true);
    const session = await first.createSession();
    await (
      await first.begin(session, ["a"])
    ).outcome;
    ports.clock.advance(60_000);
    const before = await sessions.getSession(create(GetSessionRequestSchema, { uid: session }), context);
    const after = await sessions.resume(create(ResumeRequestSchema, { session }), context);
    expect([before.lastSeq, after.lastSeq]).toEqual([3n, 5n]);
    expect((await host.story(session)).at(-1)).toBe("END COMPLETED");
  });

  it("is unknown to whoever names no session", async () => {
    const { sessions } = bench();
    await expect(sessions.resume(create(ResumeRequestSchema, { session: "nobody" }), context)).rejects.toMatchObject({ code: "not_found" });
    await expect(sessions.suspend(create(SuspendRequestSchema), context)).rejects.toMatchObject({ code: "invalid_argument" });
  });
});

describe("CheckReplay", () => {
  it("says of each ended turn that it does the same, and calls nothing", async () => {
    const { host, reader, model } = bench();
    const session = await host.createSession();
    for (const input of ["a", "b"]) await (await host.begin(session, [input])).outcome;
    const checks = await Array.fromAsync(reader.checkReplay(create(CheckReplayRequestSchema, { session }), context));
    expect(checks.map(({ outcome, effects }) => [outcome, effects])).toEqual([
      [TurnCheck_Outcome.SAME, 1n],
      [TurnCheck_Outcome.SAME, 1n],
    ]);
    expect(model.requests).toHaveLength(2);
  });

  it("shows what was sent and what another harness would send", async () => {
    const { host, reader } = bench();
    const session = await host.createSession();
    await (
      await host.begin(session, ["a"])
    ).outcome;
    const request = create(CheckReplayRequestSchema, { session, harness: "rude" });
    const [check] = await Array.fromAsync(reader.checkReplay(request, context));
    expect(check?.outcome).toBe(TurnCheck_Outcome.DIVERGED);
    const divergence = check?.divergence;
    expect(divergence).toMatchObject({ seq: 3n, recordedKind: "model", askedKind: "model", recordedCallWhole: true });
    expect(divergence?.recordedCall?.messages.map(messageText)).toEqual(["be kind", "a"]);
    expect(divergence?.askedCall?.messages.map(messageText)).toEqual(["be rude", "a"]);
    const unknown = create(CheckReplayRequestSchema, { session, harness: "nobody" });
    await expect(Array.fromAsync(reader.checkReplay(unknown, context))).rejects.toMatchObject({ field: "harness" });
  });
});
