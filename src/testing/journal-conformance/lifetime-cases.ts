/** Opening, closing and what is left. */

import assert from "node:assert/strict";
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
  uid,
} from "./fixtures.ts";

export const LIFETIME_CASES: CaseTable = {
  "an open store is ready; a closed one answers nothing and says UNAVAILABLE": async ({ store }) => {
    await store.ready();
    await created(store, "a");
    await store[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
    await rejectsWith(store.ready(), "unavailable");
    await rejectsWith(store.create(seedOf("b")), "unavailable");
    await rejectsWith(store.append(appendAs("a", fence(0), [output("x")])), "unavailable");
    await rejectsWith(store.get(uid("a")), "unavailable");
    await rejectsWith(store.list({ limit: 1 }), "unavailable");
    await rejectsWith(pagesOf(store, { session: uid("a") }), "unavailable");
    await rejectsWith(store.readAsides({ session: uid("a") }), "unavailable");
  },

  "closing answers what was asked before": async (test) => {
    await created(test.store, "a");
    const asked = Array.from({ length: 20 }, (_, index) => test.store.append(appendAs("a", fence(0), [output(`${index}`)])));
    await test.store[Symbol.asyncDispose]();
    assert.ok((await Promise.all(asked)).every(({ kind }) => kind === "appended"));
    await test.reopen?.();
    if (test.reopen !== undefined) assert.equal((await recordsOf(test.store, "a")).length, 20);
  },

  "everything is there after opening again": async (test) => {
    if (test.reopen === undefined) return;
    await created(test.store, "a", { name: "kept", project: "p" });
    await append(test.store, "a", executionStart(), output("one"));
    forked(await test.store.fork(await forkRequest(test.store, "a", 2, "b")));
    await created(test.store, "gone", { name: "free", project: "p" });
    await append(test.store, "gone", deletion());
    const names = ["a", "b", "gone"];
    const before = await Promise.all(names.map(async (name) => [await rowOf(test.store, name), await recordsOf(test.store, name)]));
    const listing = await test.store.list({ limit: 10, includeDeleted: true });
    await test.reopen();
    const after = await Promise.all(names.map(async (name) => [await rowOf(test.store, name), await recordsOf(test.store, name)]));
    assert.deepEqual(after, before);
    assert.deepEqual(await test.store.list({ limit: 10, includeDeleted: true }), listing);
    assert.equal((await test.store.create(seedOf("c", { name: "kept", project: "p" }))).kind, "name-taken");
    assert.equal((await test.store.create(seedOf("c", { name: "free", project: "p" }))).kind, "created");
    await append(test.store, "b", output("on"));
    await append(test.store, "c", output("new"));
    for (const name of [...names, "c"]) requireChain(await recordsOf(test.store, name));
  },
};
