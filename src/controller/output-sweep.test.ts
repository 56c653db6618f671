import { describe, expect, it } from "vitest";
import { newSessionUid, SILENT_LOG, type Log, type Seq, type SessionUid } from "../base/index.ts";
import { createMemorySessionBlobs } from "../stores/blobs/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { emptySeed, seededPorts, testHarness, TestHost, TestTools, toolCall } from "../testing/index.ts";
import { SimulatedTime } from "../testing/simulator/time.ts";
import { BLOB_SWEEP_INTERVAL_MS, startOutputSweeper } from "./blob-sweeper.ts";
import { OUTPUT_AGE_MS, sweepOutputs, type OutputSweepOptions } from "./output-sweep.ts";
import { sweep } from "./sweeper.ts";

/** A host whose one tool puts what is too large for a record, another thing each time. */
function world() {
  const ports = seededPorts();
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const outputs = createMemorySessionBlobs(ports);
  let made = 0;
  const tools = new TestTools({
    large: async ({ id }, { blobs }) => {
      const ref = await blobs!.put(new TextEncoder().encode(`output ${++made}`));
      return { id, outputUri: ref.uri, outputDigest: ref.digest };
    },
  });
  const caller = testHarness((_start, sink) => sink.toolCall(toolCall("large", `call-${made}`)).then(() => undefined));
  const host = new TestHost({ journal, ports, harnesses: { test: caller }, tools, outputs });
  const turn = async (session: SessionUid) => void (await (await host.begin(session, [])).outcome);
  const fork = async (parent: SessionUid) => {
    const children = () => [emptySeed(newSessionUid(ports), ports.clock.nowMs())];
    return (await host.controller.fork({ parent, atSeq: 0 as Seq, children }))[0]!.seed.uid;
  };
  const gone = async (session: SessionUid) => {
    await host.controller.delete(session, undefined);
    await sweep({ journal, clock: ports.clock, retentionMs: 0 });
  };
  const grow = () => ports.clock.advance(OUTPUT_AGE_MS + 1);
  const sweeping = (changed: Partial<OutputSweepOptions> = {}) => sweepOutputs({ journal, outputs, clock: ports.clock, ...changed });
  /** How many outputs a session's records name, and how many of them are there, with the session or with the one that it came from. */
  const named = async (session: SessionUid, from: SessionUid = session) => {
    const results = (await host.records(session)).flatMap(({ event }) => (event?.body.case === "result" ? [event.body.value] : []));
    const found = await Promise.all(results.map(({ outputUri: uri, outputDigest: digest }) => outputs.of(from).get({ uri, digest })));
    return { named: results.length, there: found.filter((bytes) => bytes !== undefined).length };
  };
  return { ports, journal, outputs, host, turn, fork, gone, grow, sweeping, named };
}

describe("a large output", () => {
  it("is there as long as its session, deleted or not, and goes once that was reclaimed", async () => {
    const { host, turn, gone, grow, sweeping, named, outputs } = world();
    const [kept, lost, deleted] = [await host.createSession(), await host.createSession(), await host.createSession()];
    for (const session of [kept, lost, deleted]) await turn(session);
    await turn(kept);
    await gone(lost);
    await host.controller.delete(deleted, undefined);
    grow();
    expect(await sweeping()).toEqual({ removed: 1, removedBytes: "output 2".length, isCut: false });
    expect(await named(kept)).toEqual({ named: 2, there: 2 });
    expect(await named(deleted)).toEqual({ named: 1, there: 1 });
    expect((await Array.fromAsync(outputs.owners())).toSorted()).toEqual([kept, deleted].toSorted());
    expect(await sweeping()).toMatchObject({ removed: 0 });
  });

  it("stays while a fork shares records of its session, and goes when none does", async () => {
    const { host, turn, fork, gone, grow, sweeping, named, outputs } = world();
    const parent = await host.createSession();
    await turn(parent);
    const child = await fork(parent);
    const grandchild = await fork(child);
    await turn(grandchild);
    await gone(parent);
    await gone(child);
    grow();
    expect(await sweeping()).toMatchObject({ removed: 0 });
    expect(await named(grandchild, parent)).toEqual({ named: 2, there: 1 });
    expect(await named(grandchild)).toEqual({ named: 2, there: 1 });
    await gone(grandchild);
    grow();
    expect(await sweeping()).toMatchObject({ removed: 2 });
    expect(await Array.fromAsync(outputs.owners())).toEqual([]);
  });

  it("is left alone for an hour, to the millisecond", async () => {
    const { ports, host, turn, gone, sweeping } = world();
    const session = await host.createSession();
    await turn(session);
    await gone(session);
    ports.clock.advance(OUTPUT_AGE_MS);
    expect(await sweeping()).toMatchObject({ removed: 0 });
    ports.clock.advance(1);
    expect(await sweeping()).toMatchObject({ removed: 1 });
  });

  it("is not taken from a session that is made while a sweep is under way", async () => {
    const { journal, host, turn, gone, grow, sweeping, named } = world();
    const old = await host.createSession();
    await turn(old);
    await gone(old);
    grow();
    let young: SessionUid | undefined;
    const get: typeof journal.get = async (uid) => {
      const row = await journal.get(uid);
      if (young === undefined) await turn((young = await host.createSession()));
      return row;
    };
    expect(await sweeping({ journal: { ...journal, get } })).toMatchObject({ removed: 1 });
    expect(await named(young!)).toEqual({ named: 1, there: 1 });
  });

  it("goes with its session and no sooner where that has a uid that names no folder", async () => {
    const { host, turn, gone, grow, sweeping, named } = world();
    const [kept, lost] = ["../Ada's", "BOB"] as SessionUid[];
    for (const uid of [kept!, lost!]) await turn(await host.createSession({ uid }));
    await gone(lost!);
    grow();
    expect(await sweeping()).toMatchObject({ removed: 1 });
    expect(await named(kept!)).toEqual({ named: 1, there: 1 });
  });
});

describe("a sweep of outputs", () => {
  it("removes so many and no more, and says that there may be others", async () => {
    const { host, turn, gone, grow, sweeping } = world();
    for (let made = 0; made < 3; made++) {
      const session = await host.createSession();
      await turn(session);
      await turn(session);
      await gone(session);
    }
    grow();
    expect(await sweeping({ removedMax: 3 })).toMatchObject({ removed: 3, isCut: true });
    expect(await sweeping({ removedMax: 4 })).toMatchObject({ removed: 3, isCut: false });
  });

  it("removes nothing where the journal cannot be read, and reads none where there are no outputs", async () => {
    const { host, turn, gone, grow, sweeping } = world();
    const read = () => Promise.reject(new Error("the disk is busy"));
    const unread = { get: read, list: read };
    expect(await sweeping({ journal: unread })).toMatchObject({ removed: 0 });
    const session = await host.createSession();
    await turn(session);
    await gone(session);
    grow();
    await expect(sweeping({ journal: unread })).rejects.toThrow("the disk is busy");
    expect(await sweeping()).toMatchObject({ removed: 1 });
  });

  it("happens as a host starts, then every hour, and is told", async () => {
    const time = new SimulatedTime();
    const journal = createMemoryStore({ ...seededPorts(), clock: time.clock, log: SILENT_LOG });
    const outputs = createMemorySessionBlobs(time);
    const said: string[] = [];
    const log: Log = { log: (_level, message) => void said.push(message) };
    const nobodys = outputs.of("nobody" as SessionUid);
    const left = async () => (await Array.fromAsync(nobodys.list())).length;
    await nobodys.put(Uint8Array.of(1));
    await time.elapse(OUTPUT_AGE_MS + 1);
    const sweeper = startOutputSweeper({ journal, outputs, clock: time.clock, log });
    await time.settle();
    expect(await left()).toBe(0);
    await nobodys.put(Uint8Array.of(2));
    await time.elapse(2 * BLOB_SWEEP_INTERVAL_MS);
    expect(await left()).toBe(0);
    await sweeper.stop();
    expect(said).toEqual(["removed large outputs of sessions that are gone", "removed large outputs of sessions that are gone"]);
  });
});
