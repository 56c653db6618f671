/** Children of one snapshot. */

import assert from "node:assert/strict";
import { ComputeState } from "../../spi/index.ts";
import type { RuntimeCaseTable } from "./conformance.ts";
import { bound, count, rejectsWith, spec } from "./fixtures.ts";

export const FORK_CASES: RuntimeCaseTable = {
  "eight forks of one snapshot go on independently": async ({ runtime }) => {
    if (runtime.checkpoint === undefined) return;
    const parent = await runtime.create(spec("parent"));
    await count(runtime, parent);
    const snapshot = await runtime.checkpoint(parent);
    const names = Array.from({ length: 8 }, (_, index) => `child-${index}`);
    const children = await Promise.all(names.map((name) => runtime.fork(snapshot, bound(name))));
    assert.deepEqual(
      children.map(({ sessionUid }) => sessionUid),
      names,
    );
    assert.equal(new Set(children.map(({ id }) => id)).size, 8);
    // The first goes eight turns, the last one.
    const counts = await Promise.all(
      children.map(async (child, index) => {
        let last = 0;
        for (let turn = index; turn < 8; turn++) last = await count(runtime, child);
        return last;
      }),
    );
    assert.deepEqual(counts, [9, 8, 7, 6, 5, 4, 3, 2]);
    assert.equal(await count(runtime, parent), 2, "the parent is as it was");
  },

  "a child of a stored snapshot outlives its parent, and has captures of its own": async ({ runtime }) => {
    if (runtime.checkpoint === undefined) return;
    const parent = await runtime.create(spec("parent"));
    await count(runtime, parent);
    const snapshot = await runtime.snapshot(parent, "external");
    const child = await runtime.fork(snapshot, bound("child"));
    assert.equal(await count(runtime, child), 2);
    const own = await runtime.snapshot(child, "external");
    const again = await runtime.restore(own, bound("child", 3));
    assert.equal(await count(runtime, again), 3);
    const back = await runtime.restore(snapshot, bound("parent", 3));
    assert.equal(await count(runtime, back), 2);
  },

  "a child of a warm parent begins where the parent stood, or the fork is told to retry": async ({ runtime }) => {
    if (!runtime.capabilities().memorySnapshot) return;
    const parent = await runtime.create(spec("parent"));
    await count(runtime, parent);
    const snapshot = await runtime.snapshot(parent, "local");
    const child = await runtime.fork(snapshot, bound("child"));
    assert.equal(await count(runtime, child), 2);
    assert.equal(await count(runtime, parent), 2);
    // The parent went on: a fork of what it was is either that, or refused; never what it is now.
    const late = await runtime.fork(snapshot, bound("late")).catch((error: unknown) => error);
    if (late instanceof Error) await rejectsWith(Promise.reject(late), "aborted");
    else assert.equal(await count(runtime, late as typeof child), 2);
  },

  "without memory snapshots a child is a sandbox of its own": async ({ runtime }) => {
    if (runtime.capabilities().memorySnapshot) return;
    const parent = await runtime.create(spec("parent"));
    const snapshot = await runtime.snapshot(parent, "external");
    const child = await runtime.fork(snapshot, bound("child", 5));
    assert.deepEqual([child.sessionUid, child.fence], ["child", 5]);
    assert.equal(await runtime.status(child), ComputeState.COMPUTE_LIVE);
    await count(runtime, child);
  },

  "a snapshot that never was gives no sandbox": async ({ runtime }) => {
    if (!runtime.capabilities().memorySnapshot) return;
    const parent = await runtime.create(spec("parent"));
    await count(runtime, parent);
    const snapshot = await runtime.snapshot(parent, "external");
    const unknown = { ...snapshot, externalUri: snapshot.externalUri.replaceAll(/[0-9a-f]{8,}/g, (hex) => "0".repeat(hex.length)) };
    await assert.rejects(runtime.restore(unknown, bound("parent")));
    await assert.rejects(runtime.fork(unknown, bound("child")));
    await assert.rejects(runtime.restore({ ...snapshot, externalUri: "", local: "never" }, bound("parent")));
  },

  "whoever gave up gets no child": async ({ runtime }) => {
    if (runtime.checkpoint === undefined) return;
    const parent = await runtime.create(spec("parent"));
    const snapshot = await runtime.checkpoint(parent);
    const signal = AbortSignal.abort(new Error("enough"));
    await assert.rejects(runtime.fork(snapshot, { ...bound("child"), signal }), /enough/);
    await assert.rejects(runtime.restore(snapshot, { ...bound("parent"), signal }), /enough/);
    assert.equal(await count(runtime, parent), 1);
  },
};
