/** Sandboxes without snapshots. */

import assert from "node:assert/strict";
import { ComputeState } from "../../spi/index.ts";
import type { RuntimeCaseTable } from "./conformance.ts";
import { bound, count, countBy, rejectsWith, spec } from "./fixtures.ts";

export const LIFE_CASES: RuntimeCaseTable = {
  "an incarnation is bound to what it was created for": async ({ runtime }) => {
    const incarnation = await runtime.create(spec("s", 7));
    assert.equal(incarnation.runtime, runtime.name);
    assert.equal(incarnation.sessionUid, "s");
    assert.equal(incarnation.fence, 7);
    assert.notEqual(incarnation.id, "");
    assert.equal(await runtime.status(incarnation), ComputeState.COMPUTE_LIVE);
  },

  "two incarnations have different ids": async ({ runtime }) => {
    const [one, other] = [await runtime.create(spec("a")), await runtime.create(spec("b"))];
    assert.notEqual(one.id, other.id);
  },

  "its harness drives turns, one after the other": async ({ runtime }) => {
    const incarnation = await runtime.create(spec("s"));
    assert.equal(await count(runtime, incarnation), 1);
    assert.equal(await count(runtime, incarnation), 2);
  },

  "attaching again gives the same harness": async ({ runtime }) => {
    const incarnation = await runtime.create(spec("s"));
    const harness = await runtime.attach(incarnation);
    assert.equal(await runtime.attach(incarnation), harness);
    assert.equal(await countBy(harness, "s"), 1);
  },

  "it is described without a session, and says the same in a sandbox": async ({ runtime }) => {
    const apart = await runtime.describe();
    const incarnation = await runtime.create(spec("s"));
    const inside = await (await runtime.attach(incarnation)).describe();
    assert.deepEqual([inside.id, inside.version], [apart.id, apart.version]);
    assert.deepEqual(inside.capabilities, apart.capabilities);
    assert.notEqual(apart.id, "");
  },

  "sandboxes know nothing of each other": async ({ runtime, sandboxed }) => {
    if (!sandboxed) return;
    const [one, other] = await Promise.all([runtime.create(spec("a")), runtime.create(spec("b"))]);
    assert.deepEqual(await Promise.all([count(runtime, one), count(runtime, other)]), [1, 1]);
    await runtime.stop(one);
    assert.equal(await count(runtime, other), 2);
  },

  "whoever gave up before it began is told so": async ({ runtime }) => {
    const signal = AbortSignal.abort(new Error("enough"));
    await assert.rejects(runtime.create(spec("s"), { signal }), /enough/);
    const incarnation = await runtime.create(spec("s"));
    await assert.rejects(runtime.attach(incarnation, { signal }), /enough/);
    await assert.rejects(runtime.describe({ signal }), /enough/);
    assert.equal(await count(runtime, incarnation), 1);
  },

  "a stopped one is gone: terminated, and UNAVAILABLE to attach": async ({ runtime, sandboxed }) => {
    const incarnation = await runtime.create(spec("s"));
    await runtime.stop(incarnation);
    if (!sandboxed) return;
    assert.equal(await runtime.status(incarnation), ComputeState.COMPUTE_TERMINATED);
    await rejectsWith(runtime.attach(incarnation), "unavailable");
  },

  "stopping again does nothing, nor does stopping one that never was": async ({ runtime }) => {
    const incarnation = await runtime.create(spec("s"));
    await runtime.stop(incarnation);
    await runtime.stop(incarnation);
    await runtime.stop({ ...incarnation, id: "never" });
  },

  "a session has another sandbox after one that was stopped": async ({ runtime, sandboxed }) => {
    const first = await runtime.create(spec("s", 1));
    assert.equal(await count(runtime, first), 1);
    await runtime.stop(first);
    const second = await runtime.create(spec("s", 2));
    if (sandboxed) assert.equal(await count(runtime, second), 1);
    assert.equal(second.fence, 2);
  },

  "capabilities are what it does": async ({ runtime }) => {
    const { memorySnapshot, cowFork, gpuState, attest } = runtime.capabilities();
    assert.deepEqual(runtime.capabilities(), runtime.capabilities());
    assert.equal(runtime.checkpoint !== undefined, memorySnapshot, "who captures memory can do so while the sandbox goes on");
    assert.ok(memorySnapshot || (!cowFork && !gpuState && !attest), "without memory snapshots there is nothing to share, keep or attest");
  },

  "a disposed runtime does nothing more, and disposing again does nothing": async ({ runtime }) => {
    const incarnation = await runtime.create(spec("s"));
    await runtime[Symbol.asyncDispose]();
    await runtime[Symbol.asyncDispose]();
    await rejectsWith(runtime.create(spec("t")), "unavailable", "failed_precondition", "cancelled");
    await rejectsWith(runtime.attach(incarnation), "unavailable", "failed_precondition", "cancelled");
    await rejectsWith(
      runtime.restore({ $typeName: "agentsessions.v1.SnapshotRef", local: "s", externalUri: "", memory: false, sealed: false }, bound("s")),
      "unavailable",
      "failed_precondition",
      "cancelled",
    );
  },
};
