/** Fences and leases: who may write. */

import assert from "node:assert/strict";
import type { CaseTable } from "./conformance.ts";
import {
  append,
  appendAs,
  appended,
  claimAs,
  created,
  deletion,
  fence,
  HOST_A,
  HOST_B,
  output,
  recordsOf,
  rowOf,
  seq,
  textsOf,
  uid,
} from "./fixtures.ts";

export const WRITER_CASES: CaseTable = {
  "a claim mints the next fence and its records are written under it": async ({ store }) => {
    await created(store, "a");
    const first = appended(await store.append({ ...claimAs("a", HOST_A), events: [{ event: output("x") }] }));
    assert.deepEqual([first.fence, first.records[0]?.fence], [1, 1]);
    const row = await rowOf(store, "a");
    assert.deepEqual([row.fence, row.holder], [1, HOST_A]);
    assert.equal(appended(await store.append(claimAs("a", HOST_A))).fence, 2);
  },

  "a superseded fence is refused, whatever it asks, and nothing remains": async ({ store }) => {
    await created(store, "a");
    await store.append(claimAs("a", HOST_A));
    await store.append(claimAs("a", HOST_A));
    const before = await rowOf(store, "a");
    for (const stale of [0, 1, 3]) {
      assert.deepEqual(await store.append(appendAs("a", fence(stale), [output("x")])), { kind: "fenced", fence: 2 });
      assert.deepEqual(await store.append(release("a", stale)), { kind: "fenced", fence: 2 });
    }
    assert.deepEqual(await rowOf(store, "a"), before);
    assert.deepEqual(await recordsOf(store, "a"), []);
  },

  "a writer that lost its session learns that before it learns of the head": async ({ store }) => {
    await created(store, "a");
    await store.append(claimAs("a", HOST_A));
    await append(store, "a", output("x"));
    const stale = appendAs("a", fence(0), [output("y")], { expectedLastSeq: seq(0) });
    assert.equal((await store.append(stale)).kind, "fenced");
  },

  "another host's live lease holds the session; the holder itself may claim again": async ({ store }) => {
    await created(store, "a");
    await store.append(claimAs("a", HOST_A));
    assert.deepEqual(await store.append(claimAs("a", HOST_B)), { kind: "held", holder: HOST_A });
    assert.equal((await rowOf(store, "a")).fence, 1);
    assert.equal(appended(await store.append(claimAs("a", HOST_A))).fence, 2);
  },

  "a lease that ran out holds nobody off, and is not shown": async (test) => {
    await created(test.store, "a");
    await test.store.append(claimAs("a", HOST_A, { leaseMs: 200 }));
    await test.elapse(250);
    assert.equal((await rowOf(test.store, "a")).holder, undefined);
    await append(test.store, "a", output("the fence still holds"));
    assert.equal(appended(await test.store.append(claimAs("a", HOST_B))).fence, 2);
    assert.equal((await rowOf(test.store, "a")).holder, HOST_B);
  },

  "a takeover fences the host that is pushed out": async ({ store }) => {
    await created(store, "a");
    const old = appended(await store.append(claimAs("a", HOST_A))).fence;
    const taken = appended(await store.append(claimAs("a", HOST_B, { takeOver: true, keep: old })));
    assert.equal(taken.fence, 2);
    assert.deepEqual(await store.append(appendAs("a", old, [output("late")])), { kind: "fenced", fence: 2 });
  },

  "a claim may keep the newest fence, and no other": async ({ store }) => {
    await created(store, "a");
    await store.append(claimAs("a", HOST_A));
    await store.append(release("a", 1));
    assert.equal(appended(await store.append(claimAs("a", HOST_A, { keep: fence(1) }))).fence, 1);
    assert.equal((await rowOf(store, "a")).holder, HOST_A);
    await store.append(claimAs("a", HOST_A));
    assert.deepEqual(await store.append(claimAs("a", HOST_A, { keep: fence(1) })), { kind: "fenced", fence: 2 });
  },

  "a release ends the lease with its append, and the fence goes on": async ({ store }) => {
    await created(store, "a");
    await store.append(claimAs("a", HOST_A));
    await store.append({ ...release("a", 1), events: [{ event: output("last") }] });
    const row = await rowOf(store, "a");
    assert.deepEqual([row.holder, row.fence], [undefined, 1]);
    assert.equal(appended(await store.append(claimAs("a", HOST_B))).fence, 2);
    assert.deepEqual(textsOf(await recordsOf(store, "a")), ["last"]);
  },

  "a refused release leaves the lease": async ({ store }) => {
    await created(store, "a");
    await store.append(claimAs("a", HOST_A));
    assert.equal((await store.append({ ...release("a", 1), expectedLastSeq: seq(9) })).kind, "conflict");
    assert.equal((await rowOf(store, "a")).holder, HOST_A);
  },

  "a claim of no time mints a fence and holds nothing": async ({ store }) => {
    await created(store, "a");
    assert.equal(appended(await store.append(claimAs("a", HOST_A, { leaseMs: 0 }))).fence, 1);
    assert.equal((await rowOf(store, "a")).holder, undefined);
    assert.equal((await store.append(claimAs("a", HOST_B))).kind, "appended");
  },

  "a deletion ends the lease": async ({ store }) => {
    await created(store, "a");
    await store.append(claimAs("a", HOST_A));
    await append(store, "a", deletion());
    assert.equal((await rowOf(store, "a")).holder, undefined);
  },

  "a renewal extends leases and names those that were lost": async (test) => {
    for (const name of ["kept", "fenced", "released", "deleted", "other"]) {
      await created(test.store, name);
      await test.store.append(claimAs(name, name === "other" ? HOST_B : HOST_A, { leaseMs: 1_000 }));
    }
    await test.store.append(claimAs("fenced", HOST_A));
    await test.store.append(release("released", 1));
    await append(test.store, "deleted", deletion());
    const { version } = await rowOf(test.store, "kept");
    await test.elapse(600);
    const names = ["kept", "fenced", "released", "deleted", "other", "unknown"];
    const sessions = names.map((name) => ({ session: uid(name), fence: fence(1) }));
    const lost = await test.store.renew({ holder: HOST_A, leaseMs: 1_000, sessions });
    assert.deepEqual(new Set(lost), new Set(["fenced", "released", "deleted", "other", "unknown"]));
    await test.elapse(600);
    const kept = await rowOf(test.store, "kept");
    assert.deepEqual([kept.holder, kept.version], [HOST_A, version], "a renewal is no change of the row");
    assert.equal((await rowOf(test.store, "other")).holder, undefined);
  },

  "fences survive": async (test) => {
    await created(test.store, "a");
    for (let count = 0; count < 3; count++) await test.store.append(claimAs("a", HOST_A));
    await test.store.append(release("a", 3));
    await test.reopen?.();
    assert.equal((await rowOf(test.store, "a")).fence, 3);
    assert.equal((await test.store.append(appendAs("a", fence(2), [output("x")]))).kind, "fenced");
    assert.equal(appended(await test.store.append(claimAs("a", HOST_A))).fence, 4);
  },
};

function release(session: string, under: number) {
  return { session: uid(session), writer: { kind: "release", fence: fence(under) } as const, events: [] };
}
