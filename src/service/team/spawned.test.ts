import { expect, it } from "vitest";
import { SEQ_NONE, SILENT_LOG, type SessionUid } from "../../base/index.ts";
import type { JournalStore, ReadRequest } from "../../journal/index.ts";
import { messageText } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { seededPorts, testHarness, TestHost, TestTools, toolCall } from "../../testing/index.ts";
import { RememberedSpawns } from "./spawned.ts";

/** Sessions whose turns call `spawn` under the keys that their input names. */
function setup() {
  const ports = seededPorts();
  const stored = createMemoryStore({ ...ports, log: SILENT_LOG });
  const reads: ReadRequest[] = [];
  const journal: JournalStore = { ...stored, read: (request) => (reads.push(request), stored.read(request)) };
  const caller = testHarness(async ({ inputs }, sink) => {
    for (const key of messageText(inputs[0]!).split(" ")) await sink.toolCall(toolCall("spawn", key));
  });
  const host = new TestHost({ journal: stored, ports, harnesses: { test: caller }, tools: new TestTools({ spawn: async () => ({}) }) });
  const turn = async (session: SessionUid, keys: string) => void (await (await host.begin(session, [keys])).outcome);
  const spawns = new RememberedSpawns(journal);
  const keysOf = async (session: SessionUid) => (await spawns.of((await stored.get(session))!)).map(({ key }) => key);
  return { stored, host, turn, spawns, reads, keysOf };
}

it("what a session has spawned is read once, and then what is new", async () => {
  const { stored, host, turn, reads, keysOf } = setup();
  const session = await host.createSession();
  expect(await keysOf(session)).toEqual([]);
  await turn(session, "a b");
  const { lastSeq } = (await stored.get(session))!.projection;
  expect(await keysOf(session)).toEqual(["a", "b"]);
  await turn(session, "c");
  expect(await keysOf(session)).toEqual(["a", "b", "c"]);
  expect(reads.map(({ fromSeq }) => fromSeq)).toEqual([1, lastSeq]);
});

it("an older row is told what was read since, and nothing is read again", async () => {
  const { stored, host, turn, spawns, reads, keysOf } = setup();
  const session = await host.createSession();
  await turn(session, "a");
  const older = (await stored.get(session))!;
  await turn(session, "b");
  expect(await keysOf(session)).toEqual(["a", "b"]);
  expect((await spawns.of(older)).map(({ key }) => key)).toEqual(["a", "b"]);
  expect(reads.map(({ fromSeq }) => fromSeq)).toEqual([1, (await stored.get(session))!.projection.lastSeq]);
});

it("a uid that comes back with other records is read anew, whether it has more of them or fewer", async () => {
  const { stored, host, turn, keysOf } = setup();
  const session = await host.createSession();
  for (const keys of ["a", "b", "c d e", "f"]) {
    await turn(session, keys);
    expect(await keysOf(session)).toEqual(keys.split(" "));
    await host.controller.delete(session, undefined);
    await stored.reclaim(session);
    await host.createSession({ uid: session });
  }
});

it("a fork's uid that comes back as a session of its own is read from its first record on", async () => {
  const { stored, host, turn, keysOf } = setup();
  const parent = await host.createSession();
  await turn(parent, "a");
  const [row] = await host.controller.fork({ parent, atSeq: SEQ_NONE, children: ({ seed }) => [{ ...seed, uid: "child" as SessionUid }] });
  const child = row!.seed.uid;
  await turn(child, "b");
  expect(await keysOf(child)).toEqual(["b"]);
  await host.controller.delete(child, undefined);
  await stored.reclaim(child);
  await host.createSession({ uid: child });
  await turn(child, "c");
  expect(await keysOf(child)).toEqual(["c"]);
});
