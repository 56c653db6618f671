/** Snapshots of one session: warm, stored, and beside a sandbox that goes on. */

import assert from "node:assert/strict";
import { ComputeState } from "../../spi/index.ts";
import type { RuntimeCaseTable } from "./conformance.ts";
import { bound, count, holdTurn, rejectsWith, spec } from "./fixtures.ts";

export const SNAPSHOT_CASES: RuntimeCaseTable = {
  "without memory snapshots, a snapshot is a reference to the session itself": async ({ runtime }) => {
    if (runtime.capabilities().memorySnapshot) return;
    for (const kind of ["local", "external"] as const) {
      const incarnation = await runtime.create(spec("s"));
      const snapshot = await runtime.snapshot(incarnation, kind);
      assert.equal(snapshot.memory, false);
      assert.equal(snapshot.local, "s");
      assert.equal(snapshot.externalUri, "");
      await runtime.stop(incarnation);
    }
  },

  "a local one keeps the sandbox, which goes on when it is attached": async ({ runtime }) => {
    const incarnation = await runtime.create(spec("s"));
    assert.equal(await count(runtime, incarnation), 1);
    const snapshot = await runtime.snapshot(incarnation, "local");
    assert.notEqual(snapshot.local, "");
    assert.equal(snapshot.memory, runtime.capabilities().memorySnapshot);
    assert.notEqual(await runtime.status(incarnation), ComputeState.COMPUTE_TERMINATED);
    assert.equal(await count(runtime, incarnation), 2);
    assert.equal(await runtime.status(incarnation), ComputeState.COMPUTE_LIVE);
  },

  "an external one releases the sandbox": async ({ runtime, sandboxed }) => {
    const incarnation = await runtime.create(spec("s"));
    await count(runtime, incarnation);
    const snapshot = await runtime.snapshot(incarnation, "external");
    assert.equal(snapshot.memory, runtime.capabilities().memorySnapshot);
    assert.equal(snapshot.externalUri !== "", snapshot.memory, "what is stored has a place");
    if (!sandboxed) return;
    assert.equal(await runtime.status(incarnation), ComputeState.COMPUTE_TERMINATED);
    await rejectsWith(runtime.attach(incarnation), "unavailable");
  },

  "a restored session is bound to its new fence, and goes on": async ({ runtime, sandboxed }) => {
    for (const kind of ["local", "external"] as const) {
      const first = await runtime.create(spec(kind, 1));
      const before = await count(runtime, first);
      const snapshot = await runtime.snapshot(first, kind);
      const again = await runtime.restore(snapshot, bound(kind, 9));
      assert.equal(again.sessionUid, kind);
      assert.equal(again.fence, 9);
      assert.notEqual(again.id, first.id);
      assert.equal(await runtime.status(again), ComputeState.COMPUTE_LIVE);
      const after = await count(runtime, again);
      if (snapshot.memory) assert.equal(after, before + 1, "memory is as it was");
      if (sandboxed && snapshot.memory) await rejectsWith(runtime.attach(first), "unavailable");
      await runtime.stop(again);
    }
  },

  "a checkpoint leaves the sandbox running, and a restore forgets what came after it": async ({ runtime }) => {
    if (runtime.checkpoint === undefined) return;
    const incarnation = await runtime.create(spec("s"));
    await count(runtime, incarnation);
    const checkpoint = await runtime.checkpoint(incarnation);
    assert.ok(checkpoint.memory && checkpoint.externalUri !== "");
    assert.equal(await count(runtime, incarnation), 2);
    assert.equal(await count(runtime, incarnation), 3);
    await runtime.stop(incarnation);
    const again = await runtime.restore(checkpoint, bound("s"));
    assert.equal(await count(runtime, again), 2);
  },

  "each of many checkpoints can be restored, in any order": async ({ runtime }) => {
    if (runtime.checkpoint === undefined) return;
    const incarnation = await runtime.create(spec("s"));
    const checkpoints = [];
    for (let turn = 1; turn <= 12; turn++) {
      await count(runtime, incarnation);
      checkpoints.push(await runtime.checkpoint(incarnation));
    }
    await runtime.stop(incarnation);
    for (const turn of [12, 1, 7, 11, 2]) {
      const again = await runtime.restore(checkpoints[turn - 1]!, bound("s", 100 - turn));
      assert.equal(await count(runtime, again), turn + 1);
      await runtime.stop(again);
    }
  },

  "what is stored outlives the runtime": async (test) => {
    if (test.reopen === undefined || !test.runtime.capabilities().memorySnapshot) return;
    const first = await test.runtime.create(spec("s"));
    await count(test.runtime, first);
    const snapshot = await test.runtime.snapshot(first, "external");
    await test.reopen();
    assert.equal(await test.runtime.status(first), ComputeState.COMPUTE_TERMINATED);
    const again = await test.runtime.restore(snapshot, bound("s"));
    assert.equal(await count(test.runtime, again), 2);
  },

  "nothing is captured during a turn": async ({ runtime, sandboxed }) => {
    if (!sandboxed) return;
    const incarnation = await runtime.create(spec("s"));
    const turn = await holdTurn(runtime, incarnation);
    await rejectsWith(runtime.snapshot(incarnation, "local"), "aborted");
    await rejectsWith(runtime.snapshot(incarnation, "external"), "aborted");
    if (runtime.checkpoint !== undefined) await rejectsWith(runtime.checkpoint(incarnation), "aborted");
    await turn.release();
    assert.equal(await count(runtime, incarnation), 2, "the sandbox goes on");
    await runtime.snapshot(incarnation, "external");
  },

  "a sandbox that is gone cannot be captured": async ({ runtime, sandboxed }) => {
    if (!sandboxed || !runtime.capabilities().memorySnapshot) return;
    const incarnation = await runtime.create(spec("s"));
    await runtime.stop(incarnation);
    await rejectsWith(runtime.snapshot(incarnation, "external"), "unavailable");
  },

  "what a newer one replaced can be discarded, and the newer one stays": async ({ runtime }) => {
    if (runtime.discard === undefined || runtime.checkpoint === undefined) return;
    const incarnation = await runtime.create(spec("s"));
    let replaced = undefined;
    for (let turn = 1; turn <= 12; turn++) {
      await count(runtime, incarnation);
      const checkpoint = await runtime.checkpoint(incarnation);
      if (replaced !== undefined) await runtime.discard(replaced, checkpoint);
      if (replaced !== undefined) await runtime.discard(replaced, checkpoint);
      replaced = checkpoint;
    }
    const snapshot = await runtime.snapshot(incarnation, "external");
    await runtime.discard(snapshot, snapshot);
    const again = await runtime.restore(snapshot, bound("s"));
    assert.equal(await count(runtime, again), 13);
  },

  "one that is stored is whole, and one that never was is missed by name": async ({ runtime }) => {
    if (!runtime.capabilities().memorySnapshot) return;
    assert.ok(runtime.renew !== undefined, "who stores captures can renew them");
    const incarnation = await runtime.create(spec("s"));
    assert.equal(await runtime.renew(await runtime.snapshot(incarnation, "local")), undefined, "nothing is stored of a warm one");
    const snapshot = await runtime.snapshot(incarnation, "external");
    assert.equal(await runtime.renew(snapshot), undefined);
    const unknown = { ...snapshot, externalUri: snapshot.externalUri.replaceAll(/[0-9a-f]{8,}/g, (hex) => "0".repeat(hex.length)) };
    assert.match((await runtime.renew(unknown)) ?? "", /0{8}/);
  },

  "another session's is not restored": async ({ runtime }) => {
    if (!runtime.capabilities().memorySnapshot) return;
    const snapshot = await runtime.snapshot(await runtime.create(spec("s")), "external");
    await rejectsWith(runtime.restore(snapshot, bound("other")), "failed_precondition");
  },
};
