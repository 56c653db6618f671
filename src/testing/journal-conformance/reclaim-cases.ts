/** Reclaiming: storage of deleted sessions goes, what children share of them stays. */

import assert from "node:assert/strict";
import { RECLAIM_RECORDS_MAX } from "../../journal/index.ts";
import type { JournalStore, ReclaimOutcome } from "../../journal/index.ts";
import type { CaseTable } from "./conformance.ts";
import {
  append,
  appendAs,
  created,
  deletion,
  executionStart,
  fence,
  forked,
  forkRequest,
  output,
  pagesOf,
  recordsOf,
  rejectsWith,
  requireChain,
  rowOf,
  seedOf,
  seq,
  textsOf,
  uid,
} from "./fixtures.ts";

const UTF8 = new TextEncoder();

/** Reclaims a session in as many steps as it takes. */
export async function reclaimed(store: JournalStore, session: string): Promise<Exclude<ReclaimOutcome, { kind: "more" }>> {
  for (;;) {
    const outcome = await store.reclaim(uid(session));
    if (outcome.kind !== "more") return outcome;
  }
}

/** A session `a` with three texts, forked at 2 into `b`, then deleted. */
async function deletedParent(store: JournalStore): Promise<void> {
  await created(store, "a", { name: "taken" });
  await append(store, "a", output("one"), output("two"), output("three"));
  forked(await store.fork(await forkRequest(store, "a", 2, "b")));
  await append(store, "b", output("b-four"));
  await append(store, "a", deletion());
}

/** The texts of some sessions, each a whole chain. */
async function textsOfAll(store: JournalStore, ...names: string[]): Promise<string[][]> {
  return Promise.all(
    names.map(async (name) => {
      const records = await recordsOf(store, name);
      requireChain(records);
      return textsOf(records);
    }),
  );
}

export const RECLAIM_CASES: CaseTable = {
  "a session that nobody shares is gone: its row, its records and what was beside them": async (test) => {
    await created(test.store, "a");
    const events = [output("one"), output("two"), deletion()].map((event) => ({ event, aside: UTF8.encode("beside") }));
    await test.store.append(appendAs("a", fence(0), [], { events }));
    assert.deepEqual(await test.store.reclaim(uid("a")), { kind: "reclaimed" });
    assert.deepEqual(await test.store.reclaim(uid("a")), { kind: "not-found" });
    await test.reopen?.();
    assert.equal(await test.store.get(uid("a")), undefined);
    assert.deepEqual(await recordsOf(test.store, "a"), []);
    assert.equal((await test.store.readAsides({ session: uid("a") })).size, 0);
    assert.deepEqual((await test.store.list({ limit: 9, includeDeleted: true })).rows, []);
  },

  "a session that is in use, and an unknown one, are left alone": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("one"));
    const before = await rowOf(store, "a");
    assert.deepEqual(await store.reclaim(uid("a")), { kind: "not-deleted" });
    assert.deepEqual(await store.reclaim(uid("nobody")), { kind: "not-found" });
    assert.deepEqual(await rowOf(store, "a"), before);
  },

  "the prefix that children share stays, and can be read through them": async (test) => {
    await deletedParent(test.store);
    const { updateTimeMs, version } = await rowOf(test.store, "a");
    assert.deepEqual(await test.store.reclaim(uid("a")), { kind: "kept", keptSeq: 2 });
    await test.reopen?.();
    assert.deepEqual(await textsOfAll(test.store, "a", "b"), [
      ["one", "two"],
      ["one", "two", "#9", "b-four"],
    ]);
    const row = await rowOf(test.store, "a");
    assert.deepEqual([row.keptSeq, row.projection.lastSeq, row.updateTimeMs, row.version], [2, 4, updateTimeMs, version + 1]);
    assert.deepEqual(await test.store.append(appendAs("a", row.fence, [output("x")])), { kind: "deleted" });
    assert.deepEqual(await pagesOf(test.store, { session: uid("a"), fromSeq: seq(3) }), []);
  },

  "asides go and stay with their records": async ({ store }) => {
    await created(store, "a");
    const events = ["one", "two", "three"].map((text) => ({ event: output(text), aside: UTF8.encode(text) }));
    await store.append(appendAs("a", fence(0), [], { events }));
    forked(await store.fork(await forkRequest(store, "a", 2, "b")));
    await append(store, "a", deletion());
    await reclaimed(store, "a");
    assert.deepEqual([...(await store.readAsides({ session: uid("b") })).keys()], [1, 2]);
    assert.deepEqual([...(await store.readAsides({ session: uid("a") })).keys()], [1, 2]);
  },

  "reclaiming again changes nothing as long as the children need the same": async ({ store }) => {
    await deletedParent(store);
    await store.reclaim(uid("a"));
    const before = await rowOf(store, "a");
    assert.deepEqual(await store.reclaim(uid("a")), { kind: "kept", keptSeq: 2 });
    assert.deepEqual(await rowOf(store, "a"), before);
  },

  "a family unwinds: a child that was reclaimed itself no longer counts": async (test) => {
    const { store } = test;
    await deletedParent(store);
    forked(await store.fork(await forkRequest(store, "b", 4, "c")));
    forked(await store.fork(await forkRequest(store, "b", 1, "d")));
    await append(store, "b", deletion());
    assert.deepEqual(await reclaimed(store, "a"), { kind: "kept", keptSeq: 2 });
    assert.deepEqual(await reclaimed(store, "b"), { kind: "kept", keptSeq: 4 });
    await append(store, "c", deletion());
    assert.deepEqual(await reclaimed(store, "c"), { kind: "reclaimed" });
    // What is left of b is the first record, which is a's.
    assert.deepEqual(await reclaimed(store, "b"), { kind: "kept", keptSeq: 1 });
    assert.deepEqual(await reclaimed(store, "a"), { kind: "kept", keptSeq: 1 });
    await test.reopen?.();
    assert.deepEqual(await textsOfAll(test.store, "a", "b", "d"), [["one"], ["one"], ["one", "#9"]]);
    await append(test.store, "d", deletion());
    for (const name of ["d", "b", "a"]) assert.deepEqual(await reclaimed(test.store, name), { kind: "reclaimed" });
  },

  "a large session goes in slices, from its end, and can be read at any time": async (test) => {
    await created(test.store, "a");
    for (let batch = 0; batch < 3; batch++) await append(test.store, "a", ...Array.from({ length: 700 }, () => output("x")));
    forked(await test.store.fork(await forkRequest(test.store, "a", 100, "b")));
    await append(test.store, "a", deletion());
    const first = await test.store.reclaim(uid("a"));
    assert.deepEqual(first, { kind: "more", keptSeq: 2_101 - RECLAIM_RECORDS_MAX });
    await test.reopen?.();
    const left = await recordsOf(test.store, "a");
    requireChain(left);
    assert.equal(left.length, 2_101 - RECLAIM_RECORDS_MAX);
    assert.deepEqual(await reclaimed(test.store, "a"), { kind: "kept", keptSeq: 100 });
    assert.equal((await recordsOf(test.store, "b")).length, 101);
  },

  "a fork, a deletion and a reclaim of one tick keep what the fork shares": async (test) => {
    const { store } = test;
    await created(store, "a");
    await append(store, "a", output("one"), output("two"));
    const fork = await forkRequest(store, "a", 1, "b");
    const [made, , answer] = await Promise.all([
      store.fork(fork),
      store.append(appendAs("a", fence(0), [deletion()])),
      store.reclaim(uid("a")),
    ]);
    forked(made);
    assert.deepEqual(answer, { kind: "kept", keptSeq: 1 });
    await test.reopen?.();
    assert.deepEqual(await textsOfAll(test.store, "a", "b"), [["one"], ["one", "#9"]]);
  },

  "an append, a deletion and a reclaim of one tick leave nothing": async (test) => {
    await created(test.store, "a");
    const calls = await Promise.all([
      test.store.append(appendAs("a", fence(0), [output("one")])),
      test.store.append(appendAs("a", fence(0), [deletion()])),
      test.store.reclaim(uid("a")),
      test.store.create(seedOf("a")),
      test.store.append(appendAs("a", fence(0), [output("late")])),
    ]);
    assert.deepEqual(
      calls.map(({ kind }) => kind),
      ["appended", "appended", "reclaimed", "uid-taken", "not-found"],
    );
    await test.reopen?.();
    await created(test.store, "a");
    assert.deepEqual(await recordsOf(test.store, "a"), []);
  },

  "a uid that was reclaimed is free, and nothing of the earlier session is in the new one": async (test) => {
    await deletedParent(test.store);
    await append(test.store, "b", deletion());
    for (const name of ["b", "a"]) assert.deepEqual(await reclaimed(test.store, name), { kind: "reclaimed" });
    await test.reopen?.();
    await created(test.store, "a", { name: "taken" });
    await append(test.store, "a", executionStart(), output("new"));
    await test.reopen?.();
    assert.deepEqual(await textsOfAll(test.store, "a", "b"), [["#12", "new"], []]);
    assert.equal((await test.store.create(seedOf("c", { name: "taken" }))).kind, "name-taken");
  },

  "a read that loses its records says so, and is no damage": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", ...Array.from({ length: 20 }, () => output("x")), deletion());
    const pages = store.read({ session: uid("a"), pageRecordsMax: 5 })[Symbol.asyncIterator]();
    await pages.next();
    await reclaimed(store, "a");
    await rejectsWith(pages.next(), "aborted");
  },

  "deleted sessions are found by the time of their deletion": async (test) => {
    for (const name of ["a", "b", "c"]) await created(test.store, name);
    await append(test.store, "a", deletion());
    const { updateTimeMs } = await rowOf(test.store, "a");
    await test.elapse(10);
    await append(test.store, "b", deletion());
    const listed = async (deletedBeforeMs: number) =>
      (await test.store.list({ deletedBeforeMs, limit: 9 })).rows.map((row) => row.seed.uid);
    assert.deepEqual(await listed(updateTimeMs - 1), []);
    assert.deepEqual(await listed(updateTimeMs), ["a"]);
    assert.deepEqual((await listed((await rowOf(test.store, "b")).updateTimeMs)).toSorted(), ["a", "b"]);
  },

  "a call whose signal has fired does nothing": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", deletion());
    await rejectsWith(store.reclaim(uid("a"), { signal: AbortSignal.abort() }), "cancelled");
    assert.equal((await recordsOf(store, "a")).length, 1);
  },
};
