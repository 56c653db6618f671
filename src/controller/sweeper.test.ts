import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { HoldfastError, SILENT_LOG, type LogFields, type Seq } from "../base/index.ts";
import { createChainVerifier, RECLAIM_RECORDS_MAX, type JournalStore, type StoredRecord } from "../journal/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import {
  append,
  created,
  deletion,
  forked,
  forkRequest,
  output,
  pagesOf,
  recordsOf,
  uid,
} from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { startSweeper, sweep, sweepIntervalMs, type SweepOptions } from "./sweeper.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

function memory(): { journal: JournalStore; clock: VirtualClock; options: SweepOptions } {
  const clock = new VirtualClock();
  const journal = createMemoryStore({ clock, digest: testDigest });
  return { journal, clock, options: { journal, clock, retentionMs: 30 * DAY_MS } };
}

async function remove(journal: JournalStore, session: string): Promise<void> {
  await append(journal, session, deletion());
}

/** `journal` with a `reclaim` of the test's. */
function withReclaim(journal: JournalStore, reclaim: JournalStore["reclaim"]): JournalStore {
  return {
    name: journal.name,
    create: (seed, options) => journal.create(seed, options),
    get: (session, options) => journal.get(session, options),
    list: (request) => journal.list(request),
    append: (request, options) => journal.append(request, options),
    read: (request) => journal.read(request),
    readAsides: (request) => journal.readAsides(request),
    receipts: (session, query) => journal.receipts(session, query),
    reclaim,
    adopt: (request, options) => journal.adopt(request, options),
    complete: (sessions, options) => journal.complete(sessions, options),
    fork: (request, options) => journal.fork(request, options),
    renew: (request) => journal.renew(request),
    watch: (session, listener) => journal.watch(session, listener),
    ready: (options) => journal.ready(options),
    [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
  };
}

describe("a sweep", () => {
  it("reclaims sessions whose deletion is as old as the retention, and no other", async () => {
    const { journal, clock, options } = memory();
    for (const name of ["living", "old", "young"]) await created(journal, name);
    await remove(journal, "old");
    clock.advance(DAY_MS);
    await remove(journal, "young");
    clock.advance(29 * DAY_MS - 1);
    expect(await sweep(options)).toEqual({ reclaimed: 0, kept: 0 });
    clock.advance(1);
    expect(await sweep(options)).toEqual({ reclaimed: 1, kept: 0 });
    expect(await Promise.all(["living", "old", "young"].map(async (name) => (await journal.get(uid(name))) !== undefined))).toEqual([
      true,
      false,
      true,
    ]);
  });

  it("leaves what living children share, and takes it once they are gone", async () => {
    const { journal, clock, options } = memory();
    await created(journal, "a");
    await append(journal, "a", output("one"), output("two"), output("three"));
    forked(await journal.fork(await forkRequest(journal, "a", 2, "b")));
    await remove(journal, "a");
    clock.advance(30 * DAY_MS);
    expect(await sweep(options)).toEqual({ reclaimed: 0, kept: 1 });
    expect((await recordsOf(journal, "a")).length).toBe(2);
    expect((await recordsOf(journal, "b")).length).toBe(3);
    expect(await sweep(options)).toEqual({ reclaimed: 0, kept: 1 });
    await remove(journal, "b");
    clock.advance(30 * DAY_MS);
    expect(await sweep(options)).toEqual({ reclaimed: 2, kept: 0 });
    expect((await journal.list({ limit: 9, includeDeleted: true })).rows).toEqual([]);
  });

  it("unwinds a family whose clocks ran backwards", async () => {
    const { journal, clock, options } = memory();
    await created(journal, "s0", { createTimeMs: 1_000 });
    await append(journal, "s0", output("x"));
    for (let depth = 1; depth <= 20; depth++) {
      const request = await forkRequest(journal, `s${depth - 1}`, depth, `s${depth}`);
      const children = request.children.map(({ seed, marker }) => ({ marker, seed: { ...seed, createTimeMs: 1_000 - depth } }));
      forked(await journal.fork({ ...request, children }));
    }
    for (let depth = 0; depth <= 20; depth++) await remove(journal, `s${depth}`);
    clock.advance(30 * DAY_MS);
    expect(await sweep(options)).toEqual({ reclaimed: 21, kept: 0 });
  });

  it("takes a large session in slices, and goes on where an earlier sweep was stopped", async () => {
    const { journal, clock, options } = memory();
    await created(journal, "a");
    for (let batch = 0; batch < 5; batch++) await append(journal, "a", ...Array.from({ length: 1_000 }, () => output("x")));
    await remove(journal, "a");
    clock.advance(30 * DAY_MS);
    const stopping = new AbortController();
    let slices = 0;
    const sliced = withReclaim(journal, async (session) => {
      slices += 1;
      if (slices === 2) stopping.abort();
      return journal.reclaim(session);
    });
    expect(await sweep({ ...options, journal: sliced, signal: stopping.signal })).toEqual({ reclaimed: 0, kept: 0 });
    expect((await recordsOf(journal, "a")).length).toBe(5_001 - 2 * RECLAIM_RECORDS_MAX);
    expect(await sweep({ ...options, journal: sliced })).toEqual({ reclaimed: 1, kept: 0 });
    expect(slices).toBe(5);
  });

  it("leaves a session alone whose import may still be under way", async () => {
    const { journal, clock, options } = memory();
    const from = createMemoryStore({ clock, digest: testDigest });
    const { seed } = await created(from, "a");
    const after = { seq: 0 as Seq, hash: "" };
    await journal.adopt({ seed, parent: undefined, after, records: [] });
    expect(await sweep({ ...options, retentionMs: 0 })).toEqual({ reclaimed: 0, kept: 0 });
    clock.advance(DAY_MS);
    expect(await sweep({ ...options, retentionMs: 0 })).toEqual({ reclaimed: 1, kept: 0 });
  });

  it("finds its sessions among many in pages", async () => {
    const { journal, clock, options } = memory();
    for (let index = 0; index < 250; index++) await created(journal, `s${index}`, { createTimeMs: index % 7 });
    for (let index = 0; index < 250; index += 2) await remove(journal, `s${index}`);
    clock.advance(30 * DAY_MS);
    expect(await sweep(options)).toEqual({ reclaimed: 125, kept: 0 });
    expect((await journal.list({ limit: 500, includeDeleted: true })).rows.length).toBe(125);
  });
});

describe("a sweeper", () => {
  it("sweeps at its start and then by the clock, and not after it was stopped", async () => {
    const { journal, clock } = memory();
    const logged: LogFields[] = [];
    const sweeps = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
    let count = 0;
    const log = { log: (_: string, __: string, fields?: LogFields) => void logged.push(fields ?? {}) };
    const counted: JournalStore = withReclaim(journal, (session) => journal.reclaim(session));
    const listed = {
      ...counted,
      list: async (request: Parameters<JournalStore["list"]>[0]) => {
        const page = await journal.list(request);
        sweeps[count++]?.resolve();
        return page;
      },
    };
    await created(journal, "a");
    const sweeper = startSweeper({ journal: listed, clock, log, retentionMs: 60_000 });
    await sweeps[0]?.promise;
    await remove(journal, "a");
    await nextTimer(clock);
    clock.advance(sweepIntervalMs(60_000));
    await sweeps[1]?.promise;
    expect(await journal.get(uid("a"))).toBeDefined();
    await nextTimer(clock);
    clock.advance(60_000);
    await sweeps[2]?.promise;
    await nextTimer(clock);
    expect(await journal.get(uid("a"))).toBeUndefined();
    expect(logged).toEqual([{ reclaimed: 1, kept: 0 }]);
    await sweeper.stop();
    expect(clock.pending).toBe(0);
    clock.advance(DAY_MS);
    expect(count).toBe(3);
  });

  it("logs what keeps it from its work, without a word of the store's, and tries again", async () => {
    const { journal, clock } = memory();
    await created(journal, "a");
    await remove(journal, "a");
    const logged: unknown[] = [];
    let isBroken = true;
    const broken = withReclaim(journal, async (session) => {
      if (isBroken) throw new HoldfastError("unavailable", "secret");
      return journal.reclaim(session);
    });
    const log = { log: (...line: unknown[]) => void logged.push(line) };
    const sweeper = startSweeper({ journal: broken, clock, log, retentionMs: 0 });
    await nextTimer(clock);
    expect(logged).toEqual([["warn", "deleted sessions were not reclaimed", { code: "unavailable" }]]);
    isBroken = false;
    clock.advance(1_000);
    await nextTimer(clock);
    expect(await journal.get(uid("a"))).toBeUndefined();
    await sweeper.stop();
  });

  it("sweeps about ten times within a retention", () => {
    expect([0, 60_000, 3_600_000, 30 * DAY_MS].map(sweepIntervalMs)).toEqual([1_000, 6_000, 360_000, 600_000]);
  });
});

/** Resolves once somebody sleeps on the clock. */
async function nextTimer(clock: VirtualClock): Promise<void> {
  while (clock.pending === 0) await new Promise(setImmediate);
}

/** One step of a family's life; `of` chooses among the sessions that there are. */
type Step =
  | { readonly kind: "grow" | "delete"; readonly of: number }
  | { readonly kind: "fork"; readonly of: number; readonly at: number; readonly children: number }
  | { readonly kind: "sweep" };

const steps = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("grow" as const), of: fc.nat(99) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("fork" as const),
        of: fc.nat(99),
        at: fc.nat(99),
        children: fc.integer({ min: 1, max: 3 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("delete" as const), of: fc.nat(99) }) },
    { weight: 2, arbitrary: fc.constant({ kind: "sweep" as const }) },
  ),
  { minLength: 5, maxLength: 40 },
);

/** What each living session has read so far. */
class Family {
  readonly #journal: JournalStore;
  readonly #clock = new VirtualClock();
  readonly living = new Map<string, readonly StoredRecord[]>();
  #names = 0;

  constructor(journal: JournalStore) {
    this.#journal = journal;
  }

  async live(all: readonly Step[]): Promise<void> {
    await created(this.#journal, this.#newName());
    this.living.set("s0", []);
    for (const step of all) {
      await this.#step(step);
      await this.#requireUnchanged();
    }
    for (const name of this.living.keys()) await remove(this.#journal, name);
    this.living.clear();
    await this.#sweep();
    assert.deepEqual((await this.#journal.list({ limit: 1, includeDeleted: true })).rows, [], "nothing is left");
  }

  async #step(step: Step): Promise<void> {
    const names = [...this.living.keys()];
    if (step.kind === "sweep") return this.#sweep();
    const name = names[step.of % Math.max(1, names.length)];
    if (name === undefined) return;
    const records = this.living.get(name) ?? [];
    switch (step.kind) {
      case "grow":
        await append(this.#journal, name, output(`${name} ${records.length}`));
        this.living.set(name, await recordsOf(this.#journal, name));
        return;
      case "delete":
        await remove(this.#journal, name);
        this.living.delete(name);
        return;
      case "fork":
        if (records.length > 0) await this.#fork(name, 1 + (step.at % records.length), step.children);
    }
  }

  async #fork(name: string, at: number, count: number): Promise<void> {
    const children = Array.from({ length: count }, () => this.#newName());
    forked(await this.#journal.fork(await forkRequest(this.#journal, name, at, ...children)));
    for (const child of children) this.living.set(child, await recordsOf(this.#journal, child));
  }

  async #sweep(): Promise<void> {
    this.#clock.advance(60_000);
    await sweep({ journal: this.#journal, clock: this.#clock, retentionMs: 0 });
  }

  async #requireUnchanged(): Promise<void> {
    for (const [name, before] of this.living) {
      const verifier = createChainVerifier(testDigest);
      const records: StoredRecord[] = [];
      for (const page of await pagesOf(this.#journal, { session: uid(name) })) {
        verifier.pushPage(page);
        records.push(...page);
      }
      assert.deepEqual(records, before, `${name} reads what it has read`);
      const head = { seq: before.length as Seq, hash: before.at(-1)?.contentHash ?? "" };
      assert.equal(verifier.finish(head).kind, "intact");
    }
  }

  #newName(): string {
    return `s${this.#names++}`;
  }
}

describe("whatever is forked, deleted and swept, in any order", () => {
  it("every living session reads what it has read, and verifies; and in the end nothing is left (memory)", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        await using journal = createMemoryStore({ clock: new VirtualClock(), digest: testDigest, log: SILENT_LOG });
        await new Family(journal).live(all);
      }),
      { numRuns: 150 },
    );
  });

  it("every living session reads what it has read, and verifies; and in the end nothing is left (SQLite)", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        using own = new TemporaryFolder();
        await using journal = await openSqliteStore({ folder: own.path, clock: new VirtualClock(), digest: testDigest });
        await new Family(journal).live(all);
      }),
      { numRuns: 15 },
    );
  });
});
