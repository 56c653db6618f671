/** Group commit with a writer that works beside this thread: what is drafted while a transaction is written, and what waits. */

import { describe, expect, it } from "vitest";
import { HoldfastError, SEQ_NONE, type SessionUid } from "../base/index.ts";
import { output, seedOf } from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import type { Draft } from "./draft.ts";
import { GroupCommit } from "./group-commit.ts";
import { Pace } from "./pace.ts";
import type { SessionState } from "./session-state.ts";
import type { AppendOutcome } from "./store.ts";

/** A queue over a map. Writes end when the test says so, each record takes `draftMs` to be drafted. */
class Bench {
  readonly clock = new VirtualClock();
  readonly states = new Map<SessionUid, SessionState>();
  /** The sessions of the records of each write, and how many of these had been staged. */
  readonly written: { sessions: string; staged: number }[] = [];
  readonly commits: GroupCommit;
  draftMs = 0;
  #ticks: (() => void)[] = [];
  #ends: PromiseWithResolvers<void>[] = [];
  #staged = 0;
  #keys = 0;

  constructor() {
    this.commits = new GroupCommit({
      committed: {
        load: (session) => this.states.get(session),
        nameTaken: () => false,
        originOf: () => undefined,
        hashAt: () => undefined,
        neededSeq: () => SEQ_NONE,
        sliceFloor: (_, floorSeq) => floorSeq,
      },
      clock: this.clock,
      digest: testDigest,
      schedule: (task) => this.#ticks.push(task),
      nextKey: () => ++this.#keys,
      overlaps: () => true,
      stage: (draft) => void (this.#staged = draft.records.length),
      write: (draft) => {
        this.written.push({ sessions: this.#sessionsOf(draft), staged: this.#staged });
        this.#staged = 0;
        const end = Promise.withResolvers<void>();
        this.#ends.push(end);
        return end.promise;
      },
      publish: (draft) => {
        for (const { after } of draft.changes()) this.states.set(after.seed.uid, after);
      },
      notify: () => undefined,
    });
  }

  async create(...names: string[]): Promise<this> {
    const created = names.map((name) => this.commits.run((draft) => draft.create(seedOf(name))));
    this.tick();
    await this.end();
    await Promise.all(created);
    this.written.length = 0;
    return this;
  }

  append(name: string): Promise<AppendOutcome["kind"]> {
    const session = name as SessionUid;
    const request = { session, writer: { kind: "hold", fence: 0 as never }, events: [{ event: output(name) }] } as const;
    const work = (draft: Draft) => {
      this.clock.advance(this.draftMs);
      return draft.append(request);
    };
    return this.commits.run(work, { appendsTo: session }).then(({ kind }) => kind);
  }

  get isBusy(): boolean {
    return this.#ticks.length > 0 || this.#ends.length > 0;
  }

  /** Runs what is scheduled now. */
  tick(): void {
    for (const task of this.#ticks.splice(0)) task();
  }

  /** Ends the write under way, `writeMs` after now, and lets those who waited for it go on. */
  async end(writeMs = 0, error?: HoldfastError): Promise<void> {
    this.clock.advance(writeMs);
    const end = this.#ends.shift();
    if (error === undefined) end?.resolve();
    else end?.reject(error);
    await new Promise(setImmediate);
  }

  #sessionsOf(draft: Draft): string {
    const names = new Map([...draft.changes()].map(({ after }) => [after.key, after.seed.uid]));
    return draft.records.length > 30 ? `${draft.records.length}` : draft.records.map(({ key }) => names.get(key)).join("");
  }
}

describe("while a transaction is written", () => {
  it("appends to other sessions are drafted and shown to the writer; they are written next, as they were asked", async () => {
    const bench = await new Bench().create("a", "b", "c");
    const first = bench.append("a");
    bench.tick();
    const rest = [...Array.from({ length: 20 }, () => "b"), "c"].map((name) => bench.append(name));
    bench.tick();
    expect(bench.written.map(({ sessions }) => sessions)).toEqual(["a"]);
    await bench.end();
    expect(await first).toBe("appended");
    bench.tick();
    expect(bench.written.at(-1)).toEqual({ sessions: `${"b".repeat(20)}c`, staged: 16 });
    await bench.end();
    expect(new Set(await Promise.all(rest))).toEqual(new Set(["appended"]));
  });

  it("appends to its own sessions wait for it, in order, and others overtake them", async () => {
    const bench = await new Bench().create("a", "b");
    const first = bench.append("a");
    bench.tick();
    const rest = ["a", "b", "a"].map((name) => bench.append(name));
    bench.tick();
    await bench.end();
    await first;
    const last = bench.append("a");
    bench.tick();
    expect(bench.written.map(({ sessions }) => sessions)).toEqual(["a", "baaa"]);
    await bench.end();
    expect(await Promise.all([...rest, last])).toEqual(Array(4).fill("appended"));
    expect(bench.states.get("a" as SessionUid)?.projection.lastSeq).toBe(4);
  });

  it("what may look at more than one session waits, and everything that was asked after it", async () => {
    const bench = await new Bench().create("a", "b");
    const first = bench.append("a");
    bench.tick();
    const created = bench.commits.run((draft) => draft.create(seedOf("c")));
    const rest = ["c", "b"].map((name) => bench.append(name));
    bench.tick();
    await bench.end();
    await first;
    bench.tick();
    expect(bench.written.at(-1)).toEqual({ sessions: "cb", staged: 0 });
    await bench.end();
    expect([(await created).kind, ...(await Promise.all(rest))]).toEqual(["created", "appended", "appended"]);
  });

  it("what was drafted beside it stands if it fails, and what waited for it starts from what is durable", async () => {
    const bench = await new Bench().create("a", "b");
    const first = bench.append("a");
    bench.tick();
    const rest = ["b", "a"].map((name) => bench.append(name));
    bench.tick();
    await Promise.all([
      expect(first).rejects.toMatchObject({ code: "resource_exhausted" }),
      bench.end(0, new HoldfastError("resource_exhausted", "full")),
    ]);
    bench.tick();
    await bench.end();
    expect(await Promise.all(rest)).toEqual(["appended", "appended"]);
    expect(["a", "b"].map((name) => bench.states.get(name as SessionUid)?.projection.lastSeq)).toEqual([1, 1]);
  });

  it("closing waits for what was drafted beside it", async () => {
    const bench = await new Bench().create("a", "b");
    const answered: string[] = [];
    const note = (name: string) => bench.append(name).then(() => answered.push(name));
    const asked = [note("a")];
    bench.tick();
    asked.push(note("b"));
    bench.tick();
    const closed = bench.commits.close().then(() => answered.push("closed"));
    await bench.end();
    bench.tick();
    await bench.end();
    await Promise.all([...asked, closed]);
    expect(answered).toEqual(["a", "b", "closed"]);
  });
});

describe("many appends at once", () => {
  const names = Array.from({ length: 64 }, (_, index) => `s${index}`);

  /** Appends once to every session, after writes that took `writeMs`; the sizes of the transactions. */
  async function sizesAfter(writeMs: number): Promise<string[]> {
    const bench = await new Bench().create(...names);
    bench.draftMs = 1;
    for (let round = 0; round < 20; round++) {
      const asked = names.map((name) => bench.append(name));
      do {
        bench.tick();
        bench.tick();
        await bench.end(writeMs);
      } while (bench.isBusy);
      await Promise.all(asked);
      if (round < 19) bench.written.length = 0;
    }
    return bench.written.map(({ sessions }) => sessions);
  }

  it("are two transactions where one is drafted while the other is written, and that takes no longer", async () => {
    expect(await sizesAfter(20)).toEqual(["32", "32"]);
  });

  it("are one transaction where the disk is slow", async () => {
    expect(await sizesAfter(200)).toEqual(["64"]);
  });
});

describe("Pace", () => {
  it("halves nothing before it knows how long a write takes, and no small transactions", () => {
    const pace = new Pace();
    for (let count = 0; count < 50; count++) pace.drafted(10, 10);
    expect(pace.share(64)).toBe(64);
    pace.written(5);
    expect([31, 32, 65].map((items) => pace.share(items))).toEqual([31, 16, 33]);
  });

  it("follows the disk", () => {
    const pace = new Pace();
    for (let count = 0; count < 50; count++) pace.drafted(10, 10);
    for (let count = 0; count < 20; count++) pace.written(500);
    expect(pace.share(64)).toBe(64);
    for (let count = 0; count < 20; count++) pace.written(5);
    expect(pace.share(64)).toBe(32);
  });
});
