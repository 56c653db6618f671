/** Appending: one writer, whole or not at all, in order. */

import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import { ComputeRefSchema, ComputeState } from "../../gen/agentsessions/v1/session_pb.ts";
import { APPEND_EVENTS_MAX } from "../../journal/index.ts";
import type { CaseTable } from "./conformance.ts";
import {
  append,
  appendAs,
  appended,
  approvalRequest,
  claimAs,
  created,
  deletion,
  end,
  executionStart,
  fence,
  HOST_A,
  output,
  projectionOf,
  recordsOf,
  rejectsWith,
  requireChain,
  rowOf,
  seq,
  textsOf,
  uid,
} from "./fixtures.ts";

export const APPEND_CASES: CaseTable = {
  "records are numbered from 1, link to each other and hold the events": async ({ store }) => {
    await created(store, "a");
    const first = await append(store, "a", executionStart(), output("one"));
    const second = await append(store, "a", output("two"), end());
    const records = await recordsOf(store, "a");
    requireChain(records);
    assert.deepEqual(textsOf(records), ["#12", "one", "two", "#10"]);
    assert.deepEqual(
      [...first.records, ...second.records].map((record) => ({ ...record, bytes: Buffer.from(record.bytes) })),
      records.map((record) => ({ ...record, bytes: Buffer.from(record.bytes) })),
    );
  },

  "the projection is what folding the records gives, in the outcome and in the row": async (test) => {
    await created(test.store, "a");
    for (const events of [[executionStart(), output("x"), approvalRequest("call-1")], [end("FAILED")], [executionStart("turn-2")]]) {
      const { projection } = await append(test.store, "a", ...events);
      const folded = projectionOf(await recordsOf(test.store, "a"));
      assert.deepEqual(projection, folded);
      await test.reopen?.();
      assert.deepEqual((await rowOf(test.store, "a")).projection, folded);
    }
  },

  "a stale or a future seq is a conflict, and nothing of the append remains": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("one"), output("two"));
    const before = await rowOf(store, "a");
    for (const expectedLastSeq of [seq(0), seq(1), seq(3)]) {
      const request = appendAs("a", before.fence, [output("three"), output("four")], { expectedLastSeq });
      assert.deepEqual(await store.append(request), { kind: "conflict", lastSeq: 2 });
    }
    assert.deepEqual(await rowOf(store, "a"), before);
    assert.deepEqual(textsOf(await recordsOf(store, "a")), ["one", "two"]);
  },

  "of two appends to one seq in one tick, the first is made and the second is a conflict": async ({ store }) => {
    const { fence: held } = await created(store, "a");
    const attempts = ["first", "second"].map((text) => store.append(appendAs("a", held, [output(text)], { expectedLastSeq: seq(0) })));
    const [first, second] = await Promise.all(attempts);
    assert.equal(first?.kind, "appended");
    assert.deepEqual(second, { kind: "conflict", lastSeq: 1 });
    assert.deepEqual(textsOf(await recordsOf(store, "a")), ["first"]);
  },

  "an unknown session is not-found and a deleted one takes no further append": async ({ store }) => {
    assert.deepEqual(await store.append(appendAs("nobody", fence(0), [output("x")])), { kind: "not-found" });
    await created(store, "a");
    const { projection } = await append(store, "a", deletion());
    assert.notEqual(projection.deletionState, 1);
    assert.deepEqual(await store.append(appendAs("a", fence(0), [output("x")])), { kind: "deleted" });
    assert.deepEqual(await store.append(claimAs("a", HOST_A)), { kind: "deleted" });
    assert.equal((await recordsOf(store, "a")).length, 1);
  },

  "appends of one tick keep the order of their calls, over many sessions": async ({ store }) => {
    const names = Array.from({ length: 40 }, (_, index) => `s${index}`);
    await Promise.all(names.map((name) => created(store, name)));
    const calls = Array.from({ length: 10 }, (_, turn) => names.map((name) => store.append(appendAs(name, fence(0), [output(`${turn}`)]))));
    await Promise.all(calls.flat());
    for (const name of names) {
      const records = await recordsOf(store, name);
      requireChain(records);
      assert.deepEqual(textsOf(records), ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    }
  },

  "a refused or a failing append is refused alone": async ({ store }) => {
    await Promise.all(["a", "b"].map((name) => created(store, name)));
    const tooMany = Array.from({ length: APPEND_EVENTS_MAX + 1 }, () => output("x"));
    const calls = [
      store.append(appendAs("a", fence(0), [output("one")])),
      store.append(appendAs("a", fence(7), [output("fenced")])),
      store.append(appendAs("a", fence(0), tooMany)),
      store.append(appendAs("nobody", fence(0), [output("lost")])),
      store.append(appendAs("a", fence(0), [output("two")], { expectedLastSeq: seq(1) })),
      store.append(appendAs("b", fence(0), [output("three")])),
    ];
    const results = await Promise.allSettled(calls);
    assert.deepEqual(
      results.map((result) => (result.status === "fulfilled" ? result.value.kind : "rejected")),
      ["appended", "fenced", "rejected", "not-found", "appended", "appended"],
    );
    assert.deepEqual(textsOf(await recordsOf(store, "a")), ["one", "two"]);
    assert.deepEqual(textsOf(await recordsOf(store, "b")), ["three"]);
  },

  "an append over its limit is RESOURCE_EXHAUSTED; the largest one is made whole": async ({ store }) => {
    await created(store, "a");
    const events = Array.from({ length: APPEND_EVENTS_MAX }, (_, index) => output(`${index}`));
    await rejectsWith(store.append(appendAs("a", fence(0), [...events, output("one too many")])), "resource_exhausted");
    assert.deepEqual(await recordsOf(store, "a"), []);
    await append(store, "a", ...events);
    requireChain(await recordsOf(store, "a"));
    assert.equal((await rowOf(store, "a")).projection.lastSeq, APPEND_EVENTS_MAX);
  },

  "the version grows by one with every change, and a change that changes nothing is none": async (test) => {
    const { version, updateTimeMs } = await created(test.store, "a");
    await test.elapse(10);
    await append(test.store, "a", output("x"), output("y"));
    const changed = await rowOf(test.store, "a");
    assert.equal(changed.version, version + 1);
    assert.ok(changed.updateTimeMs >= updateTimeMs + 10, "the update time is the time of the change");
    await test.elapse(10);
    const { records } = await append(test.store, "a");
    assert.deepEqual(records, []);
    assert.deepEqual(await rowOf(test.store, "a"), changed);
  },

  "compute changes without an event; null removes it": async (test) => {
    await created(test.store, "a");
    const ref = create(ComputeRefSchema, { runtime: "process", worker: "w-1", attributes: { pid: "7" }, fenceToken: 3n });
    const change = { state: ComputeState.COMPUTE_WARM, ref };
    const { projection, records } = appended(await test.store.append(appendAs("a", fence(0), [], { compute: change })));
    assert.deepEqual([projection.computeState, records.length], [ComputeState.COMPUTE_WARM, 0]);
    await test.reopen?.();
    const warm = await rowOf(test.store, "a");
    assert.deepEqual([warm.compute, warm.projection.computeState, warm.version], [ref, ComputeState.COMPUTE_WARM, 2]);
    await append(test.store, "a", output("x"));
    assert.deepEqual((await rowOf(test.store, "a")).compute, ref);
    await test.store.append(appendAs("a", fence(0), [], { compute: { ref: null } }));
    await test.reopen?.();
    assert.equal((await rowOf(test.store, "a")).compute, undefined);
  },

  "a call whose signal has fired does nothing and rejects as CANCELLED, or with the signal's own HoldfastError": async ({ store }) => {
    await created(store, "a");
    const controller = new AbortController();
    const queued = store.append(appendAs("a", fence(0), [output("x")]), { signal: controller.signal });
    controller.abort();
    await rejectsWith(queued, "cancelled");
    await rejectsWith(store.append(appendAs("a", fence(0), [output("y")]), { signal: controller.signal }), "cancelled");
    const late = AbortSignal.abort(new HoldfastError("deadline_exceeded", "too late"));
    await rejectsWith(store.get(uid("a"), { signal: late }), "deadline_exceeded");
    assert.deepEqual(await recordsOf(store, "a"), []);
  },
};
