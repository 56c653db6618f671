import { describe, expect, it } from "vitest";
import { HoldfastError, SEQ_NONE, type HostId, type SessionUid } from "../base/index.ts";
import { output, seedOf } from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import type { Draft } from "./draft.ts";
import { GroupCommit, type GroupCommitPorts } from "./group-commit.ts";
import { APPENDS_QUEUED_MAX, BATCH_RECORDS_SOFT_MAX } from "./limits.ts";
import type { SessionState } from "./session-state.ts";
import type { AppendRequest } from "./store.ts";

const A = "a" as SessionUid;

function append(events: number, expected?: number): AppendRequest {
  const texts = Array.from({ length: events }, (_, index) => ({ event: output(`${index}`) }));
  return { session: A, writer: { kind: "hold", fence: 0 as never }, events: texts, expectedLastSeq: expected as never };
}

/** A queue over a map, whose ticks and writes the test makes. */
class Bench {
  readonly states = new Map<SessionUid, SessionState>();
  readonly written: Draft[] = [];
  readonly notified: number[] = [];
  readonly commits: GroupCommit;
  #ticks: (() => void)[] = [];
  #keys = 0;

  constructor(write: (draft: Draft) => Promise<void> | void = () => undefined, more: Partial<GroupCommitPorts> = {}) {
    this.commits = new GroupCommit({
      committed: {
        load: (session) => this.states.get(session),
        nameTaken: () => false,
        originOf: () => undefined,
        hashAt: () => undefined,
        neededSeq: () => SEQ_NONE,
        sliceFloor: (_, floorSeq) => floorSeq,
      },
      clock: new VirtualClock(),
      digest: testDigest,
      schedule: (task) => this.#ticks.push(task),
      nextKey: () => ++this.#keys,
      write: (draft) => {
        this.written.push(draft);
        return write(draft);
      },
      publish: (draft) => {
        for (const { after } of draft.changes()) this.states.set(after.seed.uid, after);
      },
      notify: (_, records) => this.notified.push(records.length),
      ...more,
    });
  }

  /** Runs what is scheduled now. */
  tick(): void {
    for (const task of this.#ticks.splice(0)) task();
  }

  get scheduled(): number {
    return this.#ticks.length;
  }

  async withSession(): Promise<this> {
    const created = this.commits.run((draft) => draft.create(seedOf("a")));
    this.tick();
    await created;
    this.written.length = 0;
    this.notified.length = 0;
    return this;
  }
}

describe("GroupCommit", () => {
  it("makes one transaction of what is asked in one tick", async () => {
    const bench = await new Bench().withSession();
    const asked = [0, 1, 2].map((expected) => bench.commits.run((draft) => draft.append(append(1, expected))));
    expect([bench.scheduled, bench.written.length]).toEqual([1, 0]);
    bench.tick();
    expect((await Promise.all(asked)).map(({ kind }) => kind)).toEqual(["appended", "appended", "appended"]);
    expect(bench.written.map(({ records }) => records.length)).toEqual([3]);
    expect(bench.states.get(A)?.projection.lastSeq).toBe(3);
  });

  it("writes nothing for answers that change nothing", async () => {
    const bench = await new Bench().withSession();
    const asked = bench.commits.run((draft) => draft.append(append(1, 7)));
    bench.tick();
    expect([(await asked).kind, bench.written.length, bench.notified]).toEqual(["conflict", 0, []]);
  });

  it("writes one transaction at a time; what is asked meanwhile is the next", async () => {
    const writes: PromiseWithResolvers<void>[] = [];
    const bench = await new Bench((draft) => {
      if (draft.records.length === 0) return undefined;
      const write = Promise.withResolvers<void>();
      writes.push(write);
      return write.promise;
    }).withSession();
    const first = bench.commits.run((draft) => draft.append(append(1, 0)));
    bench.tick();
    const later = [1, 2].map((expected) => bench.commits.run((draft) => draft.append(append(1, expected))));
    bench.tick();
    expect([bench.scheduled, writes.length, bench.notified]).toEqual([0, 1, []]);
    writes[0]?.resolve();
    expect((await first).kind).toBe("appended");
    bench.tick();
    expect([writes.length, bench.written.at(-1)?.records.length]).toEqual([2, 2]);
    writes[1]?.resolve();
    expect((await Promise.all(later)).map(({ kind }) => kind)).toEqual(["appended", "appended"]);
  });

  it.each(["throws", "rejects"])(
    "rejects a whole transaction when its write %s, tells nobody, and starts again from what is durable",
    async (how) => {
      let fails = false;
      let cleared = 0;
      const fault = new HoldfastError("resource_exhausted", "full");
      const write = () => {
        if (!fails) return undefined;
        if (how === "throws") throw fault;
        return Promise.reject(fault);
      };
      const bench = await new Bench(write, { failed: () => void cleared++ }).withSession();
      fails = true;
      const asked = [append(1, 0), append(1, 1), append(1, 9)].map((request) => bench.commits.run((draft) => draft.append(request)));
      bench.tick();
      const results = await Promise.allSettled(asked);
      expect(results.map((result) => result.status === "rejected" && result.reason === fault)).toEqual([true, true, true]);
      expect([bench.notified, cleared, bench.states.get(A)?.projection.lastSeq]).toEqual([[], 1, 0]);
      fails = false;
      const again = bench.commits.run((draft) => draft.append(append(1, 0)));
      bench.tick();
      expect((await again).kind).toBe("appended");
    },
  );

  it("hides what a writer throws that is no HoldfastError", async () => {
    const bench = await new Bench((draft) => {
      if (draft.records.length > 0) throw new Error("at /some/path");
    }).withSession();
    const asked = bench.commits.run((draft) => draft.append(append(1)));
    bench.tick();
    await expect(asked).rejects.toMatchObject({ code: "internal", message: expect.not.stringContaining("path") });
  });

  it("refuses what would wait behind too much", async () => {
    const bench = await new Bench().withSession();
    const asked = Array.from({ length: APPENDS_QUEUED_MAX }, () => bench.commits.run((draft) => draft.append(append(0))));
    await expect(bench.commits.run((draft) => draft.append(append(0)))).rejects.toMatchObject({ code: "resource_exhausted" });
    bench.tick();
    expect((await Promise.all(asked)).length).toBe(APPENDS_QUEUED_MAX);
  });

  it("ends a transaction that is large enough; the rest is the next one", async () => {
    const bench = await new Bench().withSession();
    const asked = Array.from({ length: 9 }, () => bench.commits.run((draft) => draft.append(append(BATCH_RECORDS_SOFT_MAX / 4))));
    while (bench.scheduled > 0) bench.tick();
    await Promise.all(asked);
    expect(bench.written.map(({ records }) => records.length)).toEqual([4096, 4096, 1024]);
  });

  it("shows a long draft to the writer while it is being made, each record once", async () => {
    const staged: number[] = [];
    const bench = await new Bench(() => undefined, { stage: (draft) => void staged.push(draft.records.length) }).withSession();
    const asked = Array.from({ length: 50 }, () => bench.commits.run((draft) => draft.append(append(1))));
    bench.tick();
    await Promise.all(asked);
    expect(staged).toEqual([16, 32]);
    expect(bench.written.map(({ records }) => records.length)).toEqual([50]);
  });

  it("closes once everything that was asked is answered, and takes nothing more", async () => {
    const bench = await new Bench().withSession();
    const answered: string[] = [];
    const asked = bench.commits.run((draft) => draft.append(append(1))).then(() => answered.push("append"));
    const closed = bench.commits.close().then(() => answered.push("closed"));
    await expect(bench.commits.run((draft) => draft.append(append(1)))).rejects.toMatchObject({ code: "unavailable" });
    bench.tick();
    await Promise.all([asked, closed]);
    expect(answered).toEqual(["append", "closed"]);
    await bench.commits.close();
  });

  it("renews leases in the order of calls, without a write", async () => {
    const bench = await new Bench().withSession();
    const holder = "host" as HostId;
    const claim = bench.commits.run((draft) => draft.append({ ...append(0), writer: { kind: "claim", holder, leaseMs: 10 } }));
    const renewal = { holder, leaseMs: 99, sessions: [{ session: A, fence: 1 as never }] };
    const renewed = bench.commits.run((draft) => draft.renew(renewal));
    bench.tick();
    expect([(await claim).kind, await renewed, bench.written.length]).toEqual(["appended", [], 1]);
    const alone = bench.commits.run((draft) => draft.renew(renewal));
    bench.tick();
    expect([await alone, bench.written.length]).toEqual([[], 1]);
  });
});
