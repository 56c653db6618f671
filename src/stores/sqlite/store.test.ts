import { describe, expect, it } from "vitest";
import { journalStoreCases, storeUnderTest } from "../../testing/journal-conformance/index.ts";
import type { JournalStore } from "../../journal/index.ts";
import { systemClock } from "../../node/index.ts";
import {
  append,
  appendAs,
  created,
  end,
  executionStart,
  fence,
  forked,
  forkRequest,
  output,
  projectionOf,
  recordsOf,
  requireChain,
  rowOf,
  textsOf,
  uid,
} from "../../testing/journal-conformance/fixtures.ts";
import { SeededRandom, testDigest, VirtualClock } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { openSqliteStore } from "./index.ts";

describe("the SQLite store", () => {
  it("lets the event loop turn between the pages of a long read, and not after the last", async () => {
    using folder = new TemporaryFolder();
    await using store = await openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });
    await created(store, "a");
    await append(store, "a", ...Array.from({ length: 30 }, () => output("x")));
    let turns = 0;
    const turn = () => {
      turns++;
      pending = setImmediate(turn);
    };
    let pending = setImmediate(turn);
    for await (const page of store.read({ session: uid("a"), pageRecordsMax: 10 })) expect(page.length).toBe(10);
    clearImmediate(pending);
    expect(turns).toBe(2);
  });

  it("lets it turn between the pages of a walk through all sessions, too", async () => {
    using folder = new TemporaryFolder();
    await using store = await openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });
    for (const name of ["a", "b", "c"]) await created(store, name);
    let turns = 0;
    const turn = () => {
      turns++;
      pending = setImmediate(turn);
    };
    let pending = setImmediate(turn);
    let page = await store.list({ limit: 1 });
    while (page.next !== undefined) page = await store.list({ limit: 1, after: page.next });
    clearImmediate(pending);
    expect(turns).toBe(2);
  });
});

/** Appends to one session, several on their way at a time, with now and then what concerns other sessions; ends with one open turn. */
async function appendManyTimes(store: JournalStore, name: string, random: SeededRandom): Promise<void> {
  await created(store, name);
  let ways: Promise<unknown>[] = [];
  for (let round = 0; round < 40; round++) {
    const events = random.below(6) === 0 ? [end(), executionStart()] : [output(`${name} ${round}`)];
    ways.push(store.append(appendAs(name, fence(0), round === 0 ? [executionStart()] : events)));
    if (random.below(3) > 0) continue;
    await Promise.all(ways);
    ways = [];
    if (random.below(4) === 0) forked(await store.fork(await forkRequest(store, name, 1, `${name}/${round}`)));
  }
  await Promise.all(ways);
}

describe.each(["inline", "worker"] as const)("many sessions that append at once, written %s", (writer) => {
  it("have whole chains, in the order of their calls, and rows that say what they say, now and when opened again", async () => {
    using folder = new TemporaryFolder();
    const open = () => openSqliteStore({ folder: folder.path, clock: systemClock, digest: testDigest, writer });
    const names = Array.from({ length: 80 }, (_, index) => `s${index}`);
    const random = new SeededRandom(7);
    {
      await using store = await open();
      await Promise.all(names.map((name) => appendManyTimes(store, name, random)));
      await requireWhole(store);
    }
    await using store = await open();
    expect(await requireWhole(store)).toBeGreaterThan(3_200);
  });
});

/** Checks every session of a journal. Returns how many records they have. */
async function requireWhole(store: JournalStore): Promise<number> {
  let count = 0;
  for (const row of (await store.list({ limit: 9_999 })).rows) {
    const records = await recordsOf(store, row.seed.uid);
    requireChain(records);
    expect(row.projection).toEqual(projectionOf(records));
    expect(row).toEqual(await rowOf(store, row.seed.uid));
    const texts = textsOf(records).filter((text) => text.startsWith("s"));
    const rounds = texts.map((text) => Number(text.split(" ")[1]));
    expect(rounds).toEqual(rounds.toSorted((left, right) => left - right));
    count += records.length;
  }
  return count;
}

describe.each(["inline", "worker"] as const)("the SQLite store, written %s", (writer) => {
  const open = () => {
    const folder = new TemporaryFolder();
    return storeUnderTest((clock) => openSqliteStore({ folder: folder.path, clock, digest: testDigest, writer }), {
      survives: true,
      cleanUp: () => folder[Symbol.dispose](),
    });
  };
  it.each(journalStoreCases(open))("$name", async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
