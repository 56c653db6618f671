/** Rows that are behind: in the middle of a turn the records say what the row would, and nobody can tell the difference. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { JournalStore, ListRequest, SessionRow } from "../../journal/index.ts";
import { ComputeState } from "../../gen/agentsessions/v1/session_pb.ts";
import {
  append,
  appendAs,
  approvalRequest,
  claimAs,
  created,
  deletion,
  end,
  executionStart,
  fence,
  forked,
  forkRequest,
  HOST_A,
  HOST_B,
  output,
  projectionOf,
  recordsOf,
  requireChain,
  rowOf,
  seq,
  toolResult,
  uid,
} from "../../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createMemoryStore } from "../memory/index.ts";
import { openSqliteStore } from "./index.ts";
import { JournalReader } from "./reader.ts";

let folder: TemporaryFolder;
let clock: VirtualClock;
beforeEach(() => {
  folder = new TemporaryFolder();
  clock = new VirtualClock();
});
afterEach(() => folder[Symbol.dispose]());

const path = () => join(folder.path, "journal.sqlite");
const open = () => openSqliteStore({ folder: folder.path, clock, digest: testDigest });

/** What the session's row in the file says by itself. */
function storedRow(name: string): { lastSeq: number; version: number; fence: number; updateTimeMs: number } | undefined {
  using db = new DatabaseSync(path(), { readOnly: true });
  const columns = "last_seq AS lastSeq, version, fence, update_time_ms AS updateTimeMs";
  return db.prepare(`SELECT ${columns} FROM sessions WHERE uid = ?`).get(name) as ReturnType<typeof storedRow>;
}

/** Does the same on a SQLite journal and on one in memory, which has no rows that could be behind. */
async function onBoth<T>(store: JournalStore, memory: JournalStore, work: (on: JournalStore) => Promise<T>): Promise<void> {
  expect(await work(store)).toEqual(await work(memory));
}

const LISTINGS: readonly Omit<ListRequest, "limit">[] = [
  {},
  { openTurn: true },
  { openTurn: false },
  { includeDeleted: true },
  { project: "" },
];

/** What a connection of another reader, which knows nothing but the file, says of every session. */
function readElsewhere(): unknown[] {
  const reader = new JournalReader(path());
  try {
    return LISTINGS.map((request) => reader.list({ ...request, limit: 99 }));
  } finally {
    reader.close();
  }
}

/** What the store says, in the same form. */
async function toldBy(store: JournalStore): Promise<SessionRow[][]> {
  return Promise.all(LISTINGS.map(async (request) => [...(await store.list({ ...request, limit: 99 })).rows]));
}

/** A session `a` in a turn, whose row is two records behind. */
async function behind(store: JournalStore): Promise<void> {
  await created(store, "a", { name: "n" });
  await store.append(claimAs("a", HOST_A, { leaseMs: 0 }));
  await append(store, "a", executionStart());
  clock.advance(5);
  await append(store, "a", output("two"));
  clock.advance(5);
  await append(store, "a", output("three"));
}

/** The same in a journal that was closed. */
async function leftBehind(): Promise<void> {
  await using store = await open();
  await behind(store);
}

describe("a row in the middle of a turn", () => {
  it("is left as it was, and its session is told with its newest record", async () => {
    await using store = await open();
    const startMs = clock.nowMs();
    await behind(store);
    expect(storedRow("a")).toEqual({ lastSeq: 1, version: 3, fence: 1, updateTimeMs: startMs });
    const row = await rowOf(store, "a");
    expect(row).toMatchObject({ version: 5, fence: 1, updateTimeMs: startMs + 10, projection: projectionOf(await recordsOf(store, "a")) });
    expect((await store.list({ limit: 9 })).rows).toEqual([row]);
    await store[Symbol.asyncDispose]();
    await using again = await open();
    expect(await rowOf(again, "a")).toEqual(row);
    expect((await again.list({ limit: 9 })).rows).toEqual([row]);
    expect(storedRow("a")).toMatchObject({ lastSeq: 1 });
  });

  it.each([
    ["the turn ends", (store: JournalStore) => append(store, "a", end())],
    ["an approval is asked", (store: JournalStore) => append(store, "a", approvalRequest("c"))],
    [
      "the compute changes",
      (store: JournalStore) => store.append(appendAs("a", fence(1), [], { compute: { state: ComputeState.COMPUTE_WARM } })),
    ],
    ["a fence is minted without a record", (store: JournalStore) => store.append(claimAs("a", HOST_B))],
    ["the session is deleted", (store: JournalStore) => append(store, "a", deletion())],
  ])("is written when %s", async (_, change) => {
    await using store = await open();
    await behind(store);
    clock.advance(5);
    await change(store);
    const { projection, version, fence: newest, updateTimeMs } = await rowOf(store, "a");
    expect(storedRow("a")).toEqual({ lastSeq: projection.lastSeq, version, fence: newest, updateTimeMs });
  });

  it("is written for the last of several changes in one transaction, if its records do not say it", async () => {
    await using store = await open();
    await behind(store);
    await Promise.all([store.append(appendAs("a", fence(1), [output("four")])), store.append(claimAs("a", HOST_B))]);
    expect(storedRow("a")).toMatchObject({ lastSeq: 4, version: 7, fence: 2 });
    await Promise.all([store.append(claimAs("a", HOST_B)), store.append(appendAs("a", fence(3), [output("five"), output("six")]))]);
    expect(storedRow("a")).toMatchObject({ lastSeq: 4, version: 7, fence: 2 });
    expect(await rowOf(store, "a")).toMatchObject({ version: 9, fence: 3, projection: { lastSeq: 6 } });
  });

  it("is DATA_LOSS where the newest record does not say what it should", async () => {
    await leftBehind();
    using db = new DatabaseSync(path());
    db.exec("UPDATE records SET version = NULL");
    await using store = await open();
    await expect(store.get(uid("a"))).rejects.toMatchObject({ code: "data_loss" });
  });
});

describe("a session whose row is behind", () => {
  it("is forked as what it is, at its newest record too, and stays as it was", async () => {
    for (const atSeq of [2, 3]) {
      using own = new TemporaryFolder();
      const openOwn = () => openSqliteStore({ folder: own.path, clock, digest: testDigest });
      {
        await using store = await openOwn();
        await behind(store);
      }
      await using store = await openOwn();
      const parent = await rowOf(store, "a");
      forked(await store.fork({ ...(await forkRequest(store, "a", atSeq, "b")), expectedLastSeq: seq(3) }));
      expect(await rowOf(store, "a")).toEqual(parent);
      await append(store, "b", output("own"));
      const records = await recordsOf(store, "b");
      requireChain(records);
      expect(await rowOf(store, "b")).toMatchObject({ parent: { uid: "a", forkSeq: atSeq }, fence: 2, projection: projectionOf(records) });
    }
  });

  it("is deleted and reclaimed whole", async () => {
    await leftBehind();
    await using store = await open();
    clock.advance(5);
    await append(store, "a", output("four"));
    await append(store, "a", deletion());
    expect((await store.list({ limit: 9, deletedBeforeMs: clock.nowMs() - 1 })).rows).toEqual([]);
    expect((await store.list({ limit: 9, deletedBeforeMs: clock.nowMs() })).rows).toEqual([await rowOf(store, "a")]);
    expect(await store.reclaim(uid("a"))).toEqual({ kind: "reclaimed" });
    using db = new DatabaseSync(path(), { readOnly: true });
    for (const table of ["records", "asides", "sessions", "seeds"])
      expect([table, db.prepare(`SELECT * FROM ${table}`).all()]).toEqual([table, []]);
  });

  it("is told by every reader of the file as the store tells it, after every append", async () => {
    await using store = await open();
    await using memory = createMemoryStore({ clock, digest: testDigest });
    const events = [
      executionStart(),
      output("x"),
      output("y"),
      approvalRequest("c"),
      output("z"),
      toolResult("c"),
      output("w"),
      end(),
      output("v"),
    ];
    for (const name of ["a", "b"]) await onBoth(store, memory, (on) => created(on, name));
    for (const event of [...events, ...events]) {
      clock.advance(3);
      await onBoth(store, memory, (on) => append(on, "a", event));
      await onBoth(store, memory, (on) => append(on, "b", output("1"), event, output("2")));
      await onBoth(store, memory, toldBy);
      const told = await toldBy(store);
      expect(readElsewhere()).toMatchObject(
        told.map((rows) =>
          rows.map(({ seed, version, fence: newest, updateTimeMs, projection }) => {
            return { seed, version, fence: newest, updateTimeMs, projection };
          }),
        ),
      );
    }
  });
});
