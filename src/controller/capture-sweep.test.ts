import { describe, expect, it } from "vitest";
import { HoldfastError, newSessionUid, SILENT_LOG, type Log, type Seq, type SessionUid } from "../base/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { createPlacedHarness } from "../placement/index.ts";
import { describeHarness, Resumability, snapshotBlob, type BlobStore } from "../spi/index.ts";
import { createMemoryBlobStore } from "../stores/blobs/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { emptySeed, forwardingBlobs, memoryCaptureParts, MemoryRuntime, seededPorts, TestHost } from "../testing/index.ts";
import { SimulatedTime } from "../testing/simulator/time.ts";
import { BLOB_SWEEP_INTERVAL_MS, startCaptureSweeper } from "./blob-sweeper.ts";
import { CAPTURE_AGE_MS, sweepCaptures, type CaptureSweepOptions } from "./capture-sweep.ts";
import { sweep } from "./sweeper.ts";

const COUNTER = describeHarness({
  id: "counter",
  version: "1",
  capabilities: { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT, forkSafe: true },
});

function world() {
  const ports = seededPorts();
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const captures = createMemoryBlobStore(ports);
  const runtime = new MemoryRuntime({
    describe: () => COUNTER,
    run: async (memory, _start, sink) => {
      memory["count"] = Number(memory["count"] ?? 0) + 1;
      await sink.output(`count ${String(memory["count"])}`);
    },
    captures,
  });
  const entry = createPlacedHarness({ name: "test", source: "static", runtime, sandboxed: true });
  const host = new TestHost({ journal, ports, harnesses: {}, placed: [entry] });
  const turns = async (session: SessionUid, count: number) => {
    for (let turn = 0; turn < count; turn++) await (await host.begin(session, ["go"])).outcome;
  };
  const fork = async (parent: SessionUid) => {
    const children = () => [emptySeed(newSessionUid(ports), ports.clock.nowMs())];
    const [child] = await host.controller.fork({ parent, atSeq: 0 as Seq, children });
    return child!.seed.uid;
  };
  const stored = async () => (await Array.fromAsync(captures.list())).map(({ digest }) => digest).toSorted();
  const sweeping = (changed: Partial<CaptureSweepOptions> = {}) =>
    sweepCaptures({ journal, captures, kinds: [memoryCaptureParts], clock: ports.clock, ...changed });
  return { ports, journal, captures, runtime, host, turns, fork, stored, sweeping };
}

/** What a session would be brought back from. */
async function captureOf(journal: JournalStore, captures: BlobStore, session: SessionUid): Promise<readonly string[]> {
  const name = snapshotBlob((await journal.get(session))?.compute?.snapshot?.externalUri ?? "");
  const bytes = name && (await captures.get(name));
  if (!name || !bytes) throw new Error("the session has no capture");
  return [name, ...memoryCaptureParts(bytes)].map(({ digest }) => digest).toSorted();
}

describe("a capture that a newer one of its session replaced", () => {
  it("goes with the turn that replaced it, however many turns there are", async () => {
    const { journal, captures, host, turns, stored } = world();
    const session = await host.createSession();
    await turns(session, 100);
    await host.controller.suspend(session, undefined);
    await host.controller.shutdown({ graceMs: 0 });
    expect(await stored()).toEqual(await captureOf(journal, captures, session));
  });

  it("stays while the session has children, one of which may begin with it, until none does", async () => {
    const { ports, journal, captures, host, turns, fork, stored, sweeping } = world();
    const session = await host.createSession();
    await turns(session, 1);
    const child = await fork(session);
    const grandchild = await fork(child);
    await host.controller.delete(child, undefined);
    await turns(session, 5);
    const inherited = await captureOf(journal, captures, grandchild);
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    await sweeping();
    const own = await captureOf(journal, captures, session);
    expect(await stored()).toEqual([...new Set([...own, ...inherited])].toSorted());
    await turns(grandchild, 1);
    expect((await host.story(grandchild)).at(-2)).toBe("OUTPUT count 2");
    await sweep({ journal, clock: ports.clock, retentionMs: 0 });
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    await sweeping();
    expect(await stored()).toEqual([...own, ...(await captureOf(journal, captures, grandchild))].toSorted());
  });

  it("stays where the append that would name the newer one fails, and the session goes on from it", async () => {
    const { ports, journal, captures, host, turns, stored, sweeping } = world();
    const session = await host.createSession();
    await turns(session, 1);
    const before = await captureOf(journal, captures, session);
    const append = journal.append.bind(journal);
    journal.append = async (request) => {
      if (request.writer.kind === "release") throw new HoldfastError("unavailable", "journal: it cannot be reached");
      return append(request);
    };
    expect((await (await host.begin(session, ["go"])).outcome).kind).toBe("interrupted");
    journal.append = append;
    expect(await stored()).not.toEqual(before);
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    await sweeping();
    expect(await stored()).toEqual(before);
    await turns(session, 1);
    expect((await host.story(session)).at(-2)).toBe("OUTPUT count 2");
  });
});

describe("a sweep of captures", () => {
  it("leaves what is needed and what is new, and takes everything else", async () => {
    const { ports, journal, captures, host, turns, stored, sweeping } = world();
    const session = await host.createSession();
    await turns(session, 3);
    const needed = await captureOf(journal, captures, session);
    await captures.put(Uint8Array.of(1, 2, 3));
    ports.clock.advance(CAPTURE_AGE_MS);
    expect(await sweeping()).toEqual({ removed: 0, removedBytes: 0, needed: needed.length, isCut: false });
    await captures.put(Uint8Array.of(4, 5));
    ports.clock.advance(1);
    expect(await sweeping()).toEqual({ removed: 1, removedBytes: 3, needed: needed.length, isCut: false });
    expect(await stored()).toHaveLength(needed.length + 1);
  });

  it("takes what a deleted session had once the session is reclaimed", async () => {
    const { ports, journal, host, turns, stored, sweeping } = world();
    const session = await host.createSession();
    await turns(session, 3);
    await host.controller.delete(session, undefined);
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    expect(await sweeping()).toMatchObject({ removed: 0 });
    await sweep({ journal, clock: ports.clock, retentionMs: 0 });
    await sweeping();
    expect(await stored()).toEqual([]);
  });

  it("takes what a parent had that was reclaimed and is kept for its children's records", async () => {
    const { ports, journal, captures, host, turns, fork, stored, sweeping } = world();
    const session = await host.createSession();
    await turns(session, 1);
    const child = await fork(session);
    await turns(child, 1);
    await host.controller.delete(session, undefined);
    await sweep({ journal, clock: ports.clock, retentionMs: 0 });
    expect(await journal.get(session)).toBeDefined();
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    await sweeping();
    expect(await stored()).toEqual(await captureOf(journal, captures, child));
  });

  it("sees what a fork names that comes while it lists, though it sees neither the child nor the parent as it was", async () => {
    const { ports, journal, host, turns, fork, sweeping } = world();
    const session = await host.createSession();
    await turns(session, 3);
    await host.controller.suspend(session, undefined);
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    let child: SessionUid | undefined;
    const list: JournalStore["list"] = async (request) => {
      if (child === undefined) {
        // The listing is past where the child will be, and not yet at its parent, which lets go of what the child begins with.
        child = await fork(session);
        await turns(session, 1);
        request = { ...request, after: { createTimeMs: ports.clock.nowMs() - 1, uid: "" as SessionUid } };
      }
      return journal.list(request);
    };
    await sweeping({ journal: { list } });
    await turns(child!, 1);
    expect((await host.story(child!)).at(-2)).toBe("OUTPUT count 4");
  });

  it("removes nothing where a session needs what this host does not know, or the store cannot be read", async () => {
    const { ports, captures, host, turns, stored, sweeping } = world();
    await turns(await host.createSession(), 3);
    await captures.put(Uint8Array.of(1));
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    const before = await stored();
    await expect(sweeping({ kinds: [() => undefined] })).rejects.toMatchObject({ code: "failed_precondition" });
    const unread = forwardingBlobs(captures, { get: () => Promise.reject(new HoldfastError("unavailable", "the disk is busy")) });
    await expect(sweeping({ captures: unread })).rejects.toMatchObject({ code: "unavailable" });
    expect(await stored()).toEqual(before);
  });

  it("goes on over captures that are damaged or were never here", async () => {
    const { ports, captures, host, turns, sweeping } = world();
    await turns(await host.createSession(), 1);
    await captures.put(Uint8Array.of(1));
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    const damaged = forwardingBlobs(captures, { get: () => Promise.reject(new HoldfastError("data_loss", "a stored blob is damaged")) });
    expect(await sweeping({ captures: damaged })).toMatchObject({ removed: 1, needed: 1 });
  });

  it("removes so many and no more, and says that there are others", async () => {
    const { ports, captures, sweeping } = world();
    for (let blob = 0; blob < 5; blob++) await captures.put(Uint8Array.of(blob));
    ports.clock.advance(2 * CAPTURE_AGE_MS);
    expect(await sweeping({ removedMax: 3 })).toMatchObject({ removed: 3, isCut: true });
    expect(await sweeping({ removedMax: 2 })).toMatchObject({ removed: 2, isCut: false });
  });
});

describe("a sweeper of captures", () => {
  const sweeper = (changed: { readonly removedMax?: number } = {}) => {
    const time = new SimulatedTime();
    const journal = createMemoryStore({ ...seededPorts(), clock: time.clock, log: SILENT_LOG });
    const captures = createMemoryBlobStore(time);
    const said: string[] = [];
    const log: Log = { log: (_level, message) => void said.push(message) };
    const clock = {
      aheadMs: 0,
      nowMs: (): number => time.clock.nowMs() + clock.aheadMs,
      monotonicMs: () => time.clock.monotonicMs(),
      sleep: (ms: number, options?: { readonly signal?: AbortSignal | undefined }) => time.clock.sleep(ms, options),
      after: (ms: number, task: () => void) => time.clock.after(ms, task),
    };
    const start = () => startCaptureSweeper({ journal, captures, kinds: [], clock, log, ...changed });
    const left = async () => (await Array.fromAsync(captures.list())).length;
    return { time, captures, clock, said, start, left };
  };

  it("sweeps as it starts and then every hour, and soon again where it was cut", async () => {
    const { time, captures, start, left, said } = sweeper({ removedMax: 3 });
    for (let blob = 0; blob < 5; blob++) await captures.put(Uint8Array.of(blob));
    await time.elapse(CAPTURE_AGE_MS + 1);
    const swept = start();
    await time.settle();
    expect(await left()).toBe(2);
    await time.elapse(10_000);
    expect(await left()).toBe(0);
    await captures.put(Uint8Array.of(9));
    await time.elapse(BLOB_SWEEP_INTERVAL_MS);
    expect(await left()).toBe(1);
    await time.elapse(BLOB_SWEEP_INTERVAL_MS);
    expect(await left()).toBe(0);
    await swept.stop();
    expect(said).toEqual(Array.from({ length: 3 }, () => "removed captures that no session needs"));
  });

  it("leaves a sweep out after the wall clock jumped ahead: what is on its way looks old", async () => {
    const { time, captures, clock, start, left } = sweeper();
    const swept = start();
    await time.elapse(BLOB_SWEEP_INTERVAL_MS - 1);
    await captures.put(Uint8Array.of(1));
    clock.aheadMs = 8 * CAPTURE_AGE_MS;
    await time.elapse(1);
    expect(await left()).toBe(1);
    await time.elapse(BLOB_SWEEP_INTERVAL_MS);
    expect(await left()).toBe(0);
    await swept.stop();
  });
});
