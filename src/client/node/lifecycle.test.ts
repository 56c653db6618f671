import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../../base/index.ts";
import { startServer } from "../../server/index.ts";
import { messageText, textMessage } from "../../spi/index.ts";
import { answering, testHarness, TestModel, type HarnessRun } from "../../testing/index.ts";
import { ComputeState, createClient, ExecState, type Client, type ReplayCheck } from "../index.ts";
import { createNodeTransport } from "./index.ts";

/** Suspend, Resume, Fork, CheckReplay and Lineage by the SDK, over real gRPC to a real server. */

const saying =
  (system: string): HarnessRun =>
  async (start, sink) => {
    await sink.model({ model: "scripted", messages: [textMessage("system", system), ...start.inputs] });
  };

async function bench(harnesses: Readonly<Record<string, HarnessRun>> = {}): Promise<{ client: Client; model: TestModel }> {
  const model = new TestModel(answering("fine"));
  const runs = { kind: saying("be kind"), rude: saying("be rude"), ...harnesses };
  const server = await startServer(
    { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" }, defaults: { harness: "kind", model: "" } },
    {
      harnesses: Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, testHarness(run)])),
      models: [{ match: "scripted", provider: model }],
      log: SILENT_LOG,
    },
  );
  const client = createClient({ transport: createNodeTransport({ address: server.url }) });
  onTestFinished(async () => {
    await client[Symbol.asyncDispose]();
    await server.shutdown({ graceMs: 0 });
  });
  return { client, model };
}

async function turn(client: Client, session?: string): Promise<string> {
  const stream = client.sessions.exec({ session, inputs: "hello" });
  await stream.finish();
  return stream.sessionUid!;
}

describe("suspend and resume", () => {
  it("bring a session to COLD and back, as often as one likes", async () => {
    const { client } = await bench();
    const session = client.session(await turn(client));
    const cold = await session.suspend();
    expect(cold.computeState).toBe(ComputeState.COMPUTE_COLD);
    expect((await session.suspend()).lastSeq).toBe(cold.lastSeq);
    const live = await session.resume();
    expect([live.computeState, live.lastSeq]).toEqual([ComputeState.COMPUTE_LIVE, cold.lastSeq + 1n]);
    expect((await session.resume()).lastSeq).toBe(live.lastSeq);
  });

  it("let an interrupted turn go on to its end, with what is recorded and no second model call", async () => {
    let broken = true;
    const { client, model } = await bench({
      flaky: async (start, sink) => {
        await sink.model({ model: "scripted", messages: start.inputs });
        if (broken) throw new Error("crash");
      },
    });
    const { metadata } = await client.sessions.create({ harness: "flaky" });
    const session = client.session(metadata!.uid);
    await expect(session.exec({ inputs: "x" }).finish()).rejects.toMatchObject({ code: "internal" });
    broken = false;
    expect(await session.resume()).toMatchObject({ execState: ExecState.EXEC_COMPLETED });
    expect(model.requests).toHaveLength(1);
  });

  it("say so when the turn stops again, and leave it running when its client waits no longer", async () => {
    const goOn = Promise.withResolvers<void>();
    let attempts = 0;
    const { client } = await bench({
      slow: async () => {
        if (++attempts < 3) throw new Error("again");
        await goOn.promise;
      },
    });
    const { metadata } = await client.sessions.create({ harness: "slow" });
    const session = client.session(metadata!.uid);
    await expect(session.exec().finish()).rejects.toMatchObject({ code: "internal" });
    await expect(session.resume()).rejects.toMatchObject({ code: "internal" });
    await expect(session.resume({ timeoutMs: 200 })).rejects.toMatchObject({ code: "deadline_exceeded" });
    expect((await session.get()).execState).toBe(ExecState.EXEC_RUNNING);
    await expect(session.suspend()).rejects.toMatchObject({ code: "aborted" });
    goOn.resolve();
    expect((await session.resume()).execState).toBe(ExecState.EXEC_COMPLETED);
  });
});

describe("fork", () => {
  it("makes one child, or one for each name, or as many as are asked for; lineage shows them all", async () => {
    const { client } = await bench();
    const uid = await turn(client);
    const session = client.session(uid);
    const [alone] = await session.fork();
    const named = await session.fork({ atSeq: 3, names: ["left", "right"], labels: { try: "1" } });
    expect(alone).toMatchObject({ parentUid: uid, forkSeq: 5n, labels: {} });
    expect(named.map(({ metadata, forkSeq, labels }) => [metadata?.name, forkSeq, labels["try"]])).toEqual([
      ["left", 3n, "1"],
      ["right", 3n, "1"],
    ]);
    expect(await session.fork({ count: 128 })).toHaveLength(128);
    const { rows, truncated } = await client.session(alone!.metadata!.uid).lineage();
    expect([rows.length, rows[0]?.uid, truncated]).toEqual([132, uid, false]);
    expect((await session.lineage({ rowsMax: 3 })).truncated).toBe(true);
  });

  it("tells what is wrong with the request, by its field", async () => {
    const { client } = await bench();
    const session = client.session(await turn(client));
    await expect(session.fork({ atSeq: 99 })).rejects.toMatchObject({ code: "failed_precondition", field: "at_seq" });
    await expect(session.fork({ count: 0 })).rejects.toMatchObject({ code: "invalid_argument", field: "count" });
    await session.fork({ names: ["taken"] });
    await expect(session.fork({ names: ["taken"] })).rejects.toMatchObject({ code: "already_exists", field: "child_names" });
  });
});

describe("checkReplay", () => {
  it("yields a typed check for each ended turn, and calls nothing", async () => {
    const { client, model } = await bench();
    const uid = await turn(client);
    await turn(client, uid);
    const checks = await Array.fromAsync(client.journal.checkReplay(uid));
    expect(checks.map(({ kind, check }) => [kind, check.startSeq, check.lastSeq, check.effects])).toEqual([
      ["same", 1n, 5n, 1n],
      ["same", 6n, 10n, 1n],
    ]);
    const [first] = await Array.fromAsync(client.session(uid).checkReplay({ harness: "rude" }));
    expect(divergenceOf(first)?.recordedCall?.messages.map(messageText)).toEqual(["be kind", "hello"]);
    expect(divergenceOf(first)?.askedCall?.messages.map(messageText)).toEqual(["be rude", "hello"]);
    expect(model.requests).toHaveLength(2);
  });

  it("can be left in the middle", async () => {
    const { client } = await bench();
    const uid = await turn(client);
    for (let more = 0; more < 20; more++) await turn(client, uid);
    for await (const { check } of client.journal.checkReplay(uid)) if (check.startSeq > 1n) break;
    expect(await Array.fromAsync(client.journal.checkReplay(uid))).toHaveLength(21);
  });
});

function divergenceOf(check: ReplayCheck | undefined) {
  return check?.kind === "diverged" ? check.divergence : undefined;
}
