/** Adoption: records of another journal, taken over byte for byte. */

import assert from "node:assert/strict";
import type { Event } from "../../gen/agentsessions/v1/common_pb.ts";
import { APPEND_EVENTS_MAX, EMPTY_PROJECTION, seal } from "../../journal/index.ts";
import type { AdoptOutcome, AdoptRequest, Head, Projection, SealedRecord, SessionSeed, StoredRecord } from "../../journal/index.ts";
import { testDigest } from "../ports.ts";
import type { CaseTable } from "./conformance.ts";
import {
  append,
  appendAs,
  appended,
  claimAs,
  created,
  deletion,
  end,
  executionStart,
  fence,
  forkMarker,
  forkRequest,
  HOST_A,
  output,
  projectionOf,
  recordsOf,
  rejectsWith,
  requireChain,
  rowOf,
  seedOf,
  seq,
  textsOf,
  uid,
} from "./fixtures.ts";
import { reclaimed } from "./reclaim-cases.ts";

const UTF8 = new TextEncoder();
const NOTHING: Head = { seq: seq(0), hash: "" };

/** A session of another journal. */
interface Foreign {
  readonly seed: SessionSeed;
  readonly parent: AdoptRequest["parent"];
  /** All of them, those of the parent first. */
  readonly records: readonly StoredRecord[];
}

/** What another journal has: a session `a` (a turn under fence 3), its fork `b` at 2, and `gone`, which is `a` deleted. */
function elsewhere(): Readonly<Record<"a" | "b" | "gone", Foreign>> {
  const seed = seedOf("a", { name: "first", project: "p" });
  const turn = sealed(EMPTY_PROJECTION, 3, executionStart(), output("two"), end());
  const prefix = turn.slice(0, 2);
  const projection = projectionOf(prefix);
  const fork = [...prefix, ...sealed(projection, 4, forkMarker(), output("b-four"))];
  return {
    a: { seed, parent: undefined, records: turn },
    b: { seed: seedOf("b"), parent: { uid: uid("a"), forkSeq: seq(2), projection }, records: fork },
    gone: { seed, parent: undefined, records: [...turn, ...sealed(projectionOf(turn), 4, deletion())] },
  };
}

function sealed(before: Projection, under: number, ...events: Event[]): readonly StoredRecord[] {
  const added = events.map((event) => ({ event }));
  return seal(before, fence(under), added, testDigest).records;
}

/** An adoption of everything that a session wrote itself. */
function requestOf({ seed, parent, records }: Foreign, more: Partial<AdoptRequest> = {}): AdoptRequest {
  const forkSeq = parent?.forkSeq ?? 0;
  const own = records.slice(forkSeq).map(({ bytes }) => ({ bytes }));
  return { seed, parent, after: headOf(records.slice(0, forkSeq)), records: own, ...more };
}

function headOf(records: readonly StoredRecord[]): Head {
  const last = records.at(-1);
  return last === undefined ? NOTHING : { seq: last.seq, hash: last.contentHash };
}

function adopted(outcome: AdoptOutcome): Extract<AdoptOutcome, { kind: "adopted" }> {
  if (outcome.kind !== "adopted") assert.fail(`the records were refused as ${JSON.stringify(outcome)}`);
  return outcome;
}

/** Compares records field by field; a store's rows may have no prototype. */
function sameRecords(found: readonly StoredRecord[], expected: readonly StoredRecord[]): void {
  const plain = (records: readonly StoredRecord[]) => records.map((record) => ({ ...record, bytes: Uint8Array.from(record.bytes) }));
  assert.deepEqual(plain(found), plain(expected));
}

/** Changes one byte of a text in a record. */
function forged({ bytes }: SealedRecord): SealedRecord {
  const copy = Uint8Array.from(bytes);
  const at = Buffer.from(copy).indexOf("two");
  assert.ok(at > 0, "the record has the text");
  copy[at] = "T".charCodeAt(0);
  return { bytes: copy };
}

export const ADOPT_CASES: CaseTable = {
  "records are kept byte for byte, and the next writer's fence is above theirs": async (test) => {
    const from = elsewhere();
    const { records } = from.a;
    adopted(await test.store.adopt(requestOf(from.a)));
    assert.equal((await test.store.complete([uid("a")])).kind, "completed");
    await test.reopen?.();
    sameRecords(await recordsOf(test.store, "a"), records);
    const row = await rowOf(test.store, "a");
    assert.deepEqual([row.seed, row.fence, row.keptSeq], [from.a.seed, 3, undefined]);
    assert.deepEqual(row.projection, projectionOf(records));
    assert.equal(appended(await test.store.append(claimAs("a", HOST_A))).fence, 4);
    await append(test.store, "a", output("on"));
    requireChain(await recordsOf(test.store, "a"));
  },

  "until it is complete a session is like a deleted one: not listed, not used, its name not taken": async (test) => {
    const from = elsewhere();
    adopted(await test.store.adopt(requestOf(from.a)));
    await test.reopen?.();
    const { store } = test;
    assert.equal((await store.list({ limit: 9 })).rows.length, 0);
    assert.deepEqual(await store.append(claimAs("a", HOST_A)), { kind: "deleted" });
    assert.deepEqual(await store.fork(await forkRequest(store, "a", 1, "c")), { kind: "deleted" });
    assert.equal((await recordsOf(store, "a")).length, 3);
    const row = await rowOf(store, "a");
    assert.deepEqual([row.keptSeq, row.projection.deletionState], [3, 2]);
    assert.equal((await store.create(seedOf("other", { name: "first", project: "p" }))).kind, "created");
    assert.deepEqual(await store.complete([uid("a")]), { kind: "name-taken", session: uid("a"), name: "first" });
    assert.equal((await store.create(seedOf("a"))).kind, "uid-taken");
  },

  "a session may come in pieces, and each piece must follow the last": async (test) => {
    const from = elsewhere();
    const { records, ...request } = requestOf(from.a);
    const heads = from.a.records.map(({ seq: at, contentHash: hash }) => ({ seq: at, hash }));
    adopted(await test.store.adopt({ ...request, records: [] }));
    adopted(await test.store.adopt({ ...request, records: records.slice(0, 1) }));
    await test.reopen?.();
    assert.deepEqual(await test.store.adopt({ ...request, records }), { kind: "conflict", lastSeq: 1 });
    assert.deepEqual(await test.store.adopt({ ...request, after: { seq: seq(1), hash: "another" }, records: [] }), {
      kind: "conflict",
      lastSeq: 1,
    });
    adopted(await test.store.adopt({ ...request, after: heads[0]!, records: records.slice(1) }));
    sameRecords(await recordsOf(test.store, "a"), from.a.records);
  },

  "records that do not link, or whose content is not what was hashed, are told and none is taken": async ({ store }) => {
    const from = elsewhere();
    const request = requestOf(from.a);
    const [first, second, third] = request.records;
    assert.ok(first && second && third);
    const faultOf = async (records: readonly SealedRecord[]) => {
      const outcome = await store.adopt({ ...request, records });
      return outcome.kind === "broken" ? [outcome.fault.kind, outcome.fault.seq] : outcome.kind;
    };
    assert.deepEqual(await faultOf([first, third]), ["seq", 2]);
    assert.deepEqual(await faultOf([first, forged(second), third]), ["content-hash", 2]);
    assert.deepEqual(await faultOf([first, { bytes: second.bytes.subarray(0, -1) }]), ["unreadable", 2]);
    // The fork's marker has the seq and links to the record before it: it is a chain, though not this session's.
    const [marker] = requestOf(from.b).records;
    assert.ok(marker);
    assert.deepEqual(await faultOf([first, marker]), ["seq", 2]);
    assert.equal(await store.get(uid("a")), undefined);
  },

  "what is beside a record comes with it": async (test) => {
    const from = elsewhere();
    const request = requestOf(from.a);
    const records = request.records.map((record, index) => (index === 1 ? { ...record, aside: UTF8.encode("beside") } : record));
    adopted(await test.store.adopt({ ...request, records }));
    await test.reopen?.();
    assert.deepEqual([...(await test.store.readAsides({ session: uid("a") }))], [[2, UTF8.encode("beside")]]);
  },

  "a fork hangs on what is here of its parent, be that complete or not": async (test) => {
    const from = elsewhere();
    const child = requestOf(from.b);
    assert.deepEqual(await test.store.adopt(child), { kind: "no-parent" });
    const parent = requestOf(from.a);
    adopted(await test.store.adopt({ ...parent, records: parent.records.slice(0, 1) }));
    assert.deepEqual(await test.store.adopt(child), { kind: "no-parent" });
    const first = headOf(from.a.records.slice(0, 1));
    adopted(await test.store.adopt({ ...parent, after: first, records: parent.records.slice(1, 2) }));
    adopted(await test.store.adopt(child));
    assert.equal((await test.store.complete([uid("b")])).kind, "completed");
    await test.reopen?.();
    sameRecords(await recordsOf(test.store, "b"), from.b.records);
    assert.deepEqual((await rowOf(test.store, "b")).parent, { uid: "a", forkSeq: 2 });
    assert.deepEqual(
      (await test.store.list({ limit: 9 })).rows.map((row) => row.seed.uid),
      ["b"],
    );
    assert.deepEqual(await reclaimed(test.store, "a"), { kind: "kept", keptSeq: 2 });
    assert.equal(appended(await test.store.append(claimAs("b", HOST_A))).fence, 5);
  },

  "a session that ends before its own first record only stands between others, until more of its parent comes": async (test) => {
    const from = elsewhere();
    adopted(await test.store.adopt(requestOf(from.a, { records: requestOf(from.a).records.slice(0, 1) })));
    const first = from.a.records.slice(0, 1);
    const bare = requestOf(from.b, {
      parent: { uid: uid("a"), forkSeq: seq(2), projection: projectionOf(first) },
      after: headOf(first),
      records: [],
    });
    assert.deepEqual(await test.store.adopt({ ...bare, records: requestOf(from.b).records }), { kind: "conflict", lastSeq: 1 });
    adopted(await test.store.adopt(bare));
    await test.reopen?.();
    const { store } = test;
    assert.deepEqual([(await rowOf(store, "b")).keptSeq, textsOf(await recordsOf(store, "b"))], [1, ["#12"]]);
    assert.deepEqual(await store.complete([uid("b")]), { kind: "not-found", session: uid("b") });
    assert.deepEqual(await store.adopt(requestOf(from.b)), { kind: "no-parent" });
    adopted(await store.adopt(requestOf(from.a, { after: headOf(first), records: requestOf(from.a).records.slice(1) })));
    const { created: isNew } = adopted(await store.adopt(requestOf(from.b)));
    assert.equal(isNew, false);
    assert.equal((await store.complete([uid("a"), uid("b")])).kind, "completed");
    await test.reopen?.();
    sameRecords(await recordsOf(test.store, "b"), from.b.records);
  },

  "a parent that is another at the fork is none": async ({ store }) => {
    const from = elsewhere();
    await created(store, "a", { name: "first", project: "p" });
    await append(store, "a", output("another"), output("two"));
    assert.deepEqual(await store.adopt(requestOf(from.b)), { kind: "no-parent" });
  },

  "another session of the same uid is not continued": async ({ store }) => {
    const from = elsewhere();
    const request = requestOf(from.a, { records: [] });
    adopted(await store.adopt(request));
    for (const fields of [{ model: "another" }, { labels: { key: "value" } }, { createTimeMs: 7 }]) {
      assert.deepEqual(await store.adopt({ ...request, seed: { ...request.seed, ...fields } }), { kind: "uid-taken" });
    }
    const parent = { uid: uid("c"), forkSeq: seq(1), projection: EMPTY_PROJECTION };
    assert.deepEqual(await store.adopt({ ...request, parent }), { kind: "uid-taken" });
  },

  "a session in use is continued in one step, unless a turn of it runs or it is deleted": async (test) => {
    const from = elsewhere();
    const request = requestOf(from.a);
    adopted(await test.store.adopt({ ...request, records: request.records.slice(0, 1) }));
    await test.store.complete([uid("a")]);
    const rest = { ...request, after: headOf(from.a.records.slice(0, 1)), records: request.records.slice(1) };
    await test.store.append(claimAs("a", HOST_A));
    assert.deepEqual(await test.store.adopt(rest), { kind: "held", holder: HOST_A });
    await test.elapse(2_000);
    const seen: number[] = [];
    test.store.watch(uid("a"), (records) => seen.push(records.length));
    const { row } = adopted(await test.store.adopt(rest));
    assert.deepEqual([row.keptSeq, row.projection.lastSeq, row.projection.openTurn, seen], [undefined, 3, undefined, [2]]);
    await append(test.store, "a", deletion());
    assert.deepEqual(await test.store.adopt({ ...rest, records: [] }), { kind: "deleted" });
  },

  "a deleted session comes as one, and nothing follows its deletion": async (test) => {
    const from = elsewhere();
    adopted(await test.store.adopt(requestOf(from.gone)));
    await test.reopen?.();
    await test.store.complete([uid("a")]);
    await test.reopen?.();
    const row = await rowOf(test.store, "a");
    assert.deepEqual([row.keptSeq, row.projection.deletionState], [undefined, 2]);
    assert.deepEqual(await test.store.append(claimAs("a", HOST_A)), { kind: "deleted" });
    assert.equal((await test.store.create(seedOf("other", { name: "first", project: "p" }))).kind, "created");
  },

  "sessions are completed together or not at all; those that are complete stay as they are": async (test) => {
    const from = elsewhere();
    adopted(await test.store.adopt(requestOf(from.a)));
    adopted(await test.store.adopt(requestOf(from.b)));
    assert.deepEqual(await test.store.complete([uid("a"), uid("nobody")]), { kind: "not-found", session: uid("nobody") });
    assert.equal((await test.store.list({ limit: 9 })).rows.length, 0);
    assert.equal((await test.store.complete([uid("a"), uid("b")])).kind, "completed");
    const before = await rowOf(test.store, "a");
    assert.equal((await test.store.complete([uid("b"), uid("a")])).kind, "completed");
    assert.deepEqual(await rowOf(test.store, "a"), before);
    await test.reopen?.();
    assert.equal((await test.store.list({ limit: 9 })).rows.length, 2);
  },

  "an incomplete session can be reclaimed; what is left of it is not completed": async ({ store }) => {
    const from = elsewhere();
    adopted(await store.adopt(requestOf(from.a)));
    adopted(await store.adopt(requestOf(from.b)));
    assert.deepEqual(await reclaimed(store, "a"), { kind: "kept", keptSeq: 2 });
    assert.deepEqual(await store.complete([uid("a")]), { kind: "not-found", session: uid("a") });
    assert.deepEqual(await store.adopt(requestOf(from.a)), { kind: "deleted" });
    for (const name of ["b", "a"]) assert.deepEqual(await reclaimed(store, name), { kind: "reclaimed" });
  },

  "a name that is freed and taken in one tick": async (test) => {
    const from = elsewhere();
    await created(test.store, "old", { name: "first", project: "p" });
    adopted(await test.store.adopt(requestOf(from.a, { records: [] })));
    const answers = await Promise.all([
      test.store.adopt(requestOf(from.a)),
      test.store.append(appendAs("old", fence(0), [deletion()])),
      test.store.complete([uid("a")]),
      test.store.create(seedOf("new", { name: "first", project: "p" })),
    ]);
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ["adopted", "appended", "completed", "name-taken"],
    );
    await test.reopen?.();
    assert.equal((await test.store.create(seedOf("newer", { name: "first", project: "p" }))).kind, "name-taken");
    assert.deepEqual(textsOf(await recordsOf(test.store, "a")), ["#12", "two", "#10"]);
  },

  "more records than an append may have are refused": async ({ store }) => {
    const from = elsewhere();
    const request = requestOf(from.a);
    const records = Array.from({ length: APPEND_EVENTS_MAX + 1 }, () => request.records[0]!);
    await rejectsWith(store.adopt({ ...request, records }), "resource_exhausted");
    assert.equal(await store.get(uid("a")), undefined);
  },
};
