/** Forks: children that share a prefix and copy nothing of it. */

import assert from "node:assert/strict";
import { FORK_CHILDREN_MAX } from "../../journal/index.ts";
import type { CaseTable } from "./conformance.ts";
import {
  append,
  appendAs,
  claimAs,
  created,
  deletion,
  executionStart,
  fence,
  forked,
  forkMarker,
  forkRequest,
  HOST_A,
  output,
  pagesOf,
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

const DEPTH = 100;

export const FORK_CASES: CaseTable = {
  "children share the prefix record for record and begin with a marker under a higher fence": async (test) => {
    await created(test.store, "a");
    await test.store.append(claimAs("a", HOST_A));
    await append(test.store, "a", executionStart(), output("two"), output("three"));
    const rows = forked(await test.store.fork(await forkRequest(test.store, "a", 2, "b", "c")));
    await append(test.store, "a", output("four"));
    await append(test.store, "b", output("b-four"));
    await test.reopen?.();
    const [parent, b, c] = await Promise.all(["a", "b", "c"].map((name) => recordsOf(test.store, name)));
    assert.ok(parent && b && c);
    for (const records of [parent, b, c]) requireChain(records);
    assert.deepEqual([b.slice(0, 2), c.slice(0, 2)], [parent.slice(0, 2), parent.slice(0, 2)]);
    assert.deepEqual(textsOf(b), ["#12", "two", "#9", "b-four"]);
    assert.deepEqual(
      b.map((record) => record.fence),
      [1, 1, 2, 2],
    );
    assert.deepEqual([rows[0]?.parent, rows[0]?.version, rows[0]?.fence], [{ uid: "a", forkSeq: 2 }, 1, 2]);
    assert.deepEqual((await rowOf(test.store, "c")).projection, projectionOf(c));
  },

  "a fork leaves its parent as it was": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("x"));
    const before = await rowOf(store, "a");
    forked(await store.fork(await forkRequest(store, "a", 1, "b")));
    assert.deepEqual(await rowOf(store, "a"), before);
  },

  "a child does not see what its parent does later, and outlives its deletion": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("one"), output("two"));
    forked(await store.fork(await forkRequest(store, "a", 1, "b")));
    await append(store, "a", output("three"), deletion());
    assert.deepEqual(textsOf(await recordsOf(store, "b")), ["one", "#9"]);
    await append(store, "b", output("on"));
    requireChain(await recordsOf(store, "b"));
  },

  "a session can be forked inside what it inherited": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("1"), output("2"), output("3"), output("4"));
    forked(await store.fork(await forkRequest(store, "a", 4, "b")));
    await append(store, "b", output("6"));
    forked(await store.fork(await forkRequest(store, "b", 2, "c")));
    forked(await store.fork(await forkRequest(store, "c", 2, "d")));
    const d = await recordsOf(store, "d");
    requireChain(d);
    assert.deepEqual(textsOf(d), ["1", "2", "#9"]);
    assert.deepEqual((await rowOf(store, "d")).parent, { uid: "c", forkSeq: 2 });
  },

  [`a lineage of ${DEPTH} sessions reads as one journal, in pages that cross it`]: async (test) => {
    await created(test.store, "s0");
    await append(test.store, "s0", output("s0"));
    for (let depth = 1; depth <= DEPTH; depth++) {
      const { projection } = await rowOf(test.store, `s${depth - 1}`);
      const children = [{ seed: seedOf(`s${depth}`), marker: { event: forkMarker() } }];
      forked(await test.store.fork({ parent: uid(`s${depth - 1}`), atSeq: projection.lastSeq, projection, children }));
      await append(test.store, `s${depth}`, output(`s${depth}`));
    }
    await test.reopen?.();
    const pages = await pagesOf(test.store, { session: uid(`s${DEPTH}`) });
    assert.equal(pages.length, 1, "a page is as full as the journal allows");
    requireChain(pages.flat());
    assert.equal(pages.flat().length, 1 + 2 * DEPTH);
    const middle = await pagesOf(test.store, { session: uid(`s${DEPTH}`), fromSeq: seq(100), toSeq: seq(103), pageRecordsMax: 2 });
    assert.deepEqual(
      middle.map((page) => textsOf(page)),
      [
        ["#9", "s50"],
        ["#9", "s51"],
      ],
    );
  },

  "what was kept beside shared records is the children's too": async ({ store }) => {
    await created(store, "a");
    const events = ["1", "2"].map((text, index) => ({ event: output(text), aside: Uint8Array.of(index) }));
    await store.append({ session: uid("a"), writer: { kind: "hold", fence: fence(0) }, events });
    const request = await forkRequest(store, "a", 1, "b");
    const marked = request.children.map((child) => ({ ...child, marker: { ...child.marker, aside: Uint8Array.of(9) } }));
    forked(await store.fork({ ...request, children: marked }));
    const asides = await store.readAsides({ session: uid("b") });
    assert.deepEqual(
      [...asides].map(([at, bytes]) => [at, [...bytes]]),
      [
        [1, [0]],
        [2, [9]],
      ],
    );
  },

  "a fork in the tick of the append that it forks at sees it": async ({ store }) => {
    const { fence: held } = await created(store, "a");
    const { projection } = await append(store, "a", output("one"));
    const made = store.append(appendAs("a", held, [output("two")], { expectedLastSeq: seq(1) }));
    const children = [{ seed: seedOf("b"), marker: { event: forkMarker() } }];
    const early = store.fork({ parent: uid("a"), atSeq: seq(1), expectedLastSeq: seq(1), projection, children });
    const outcome = store.fork({ parent: uid("a"), atSeq: seq(1), expectedLastSeq: seq(2), projection, children });
    assert.deepEqual([(await made).kind, (await early).kind, (await outcome).kind], ["appended", "conflict", "forked"]);
    requireChain(await recordsOf(store, "b"));
  },

  "refusals: unknown, deleted, past the head, a moved head": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("one"));
    const request = await forkRequest(store, "a", 1, "b");
    assert.deepEqual(await store.fork({ ...request, parent: uid("nobody") }), { kind: "not-found" });
    assert.deepEqual(await store.fork({ ...request, atSeq: seq(2) }), { kind: "past-head", lastSeq: 1 });
    assert.deepEqual(await store.fork({ ...request, expectedLastSeq: seq(0) }), { kind: "conflict", lastSeq: 1 });
    await append(store, "a", deletion());
    assert.deepEqual(await store.fork(request), { kind: "deleted" });
    assert.equal(await store.get(uid("b")), undefined);
  },

  "a taken name refuses all children": async ({ store }) => {
    await created(store, "named", { name: "n" });
    await created(store, "a");
    await append(store, "a", output("one"));
    const request = await forkRequest(store, "a", 1, "b", "c");
    const named = (...names: string[]) => ({
      ...request,
      children: request.children.map((child, index) => ({ ...child, seed: { ...child.seed, name: names[index] ?? "" } })),
    });
    assert.deepEqual(await store.fork(named("free", "n")), { kind: "name-taken", name: "n" });
    assert.deepEqual(await store.fork(named("twice", "twice")), { kind: "name-taken", name: "twice" });
    assert.equal(await store.get(uid("b")), undefined);
    forked(await store.fork(named("free", "")));
    assert.equal((await store.create(seedOf("d", { name: "free" }))).kind, "name-taken");
  },

  "children are 1 to 128, with uids of their own; a seq is at least 1": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("one"));
    const many = Array.from({ length: FORK_CHILDREN_MAX + 1 }, (_, index) => `c${index}`);
    await rejectsWith(store.fork(await forkRequest(store, "a", 1)), "invalid_argument");
    await rejectsWith(store.fork(await forkRequest(store, "a", 1, ...many)), "invalid_argument");
    await rejectsWith(store.fork(await forkRequest(store, "a", 0, "b")), "invalid_argument");
    await rejectsWith(store.fork(await forkRequest(store, "a", 1, "b", "b")), "already_exists");
    await rejectsWith(store.fork(await forkRequest(store, "a", 1, "b", "a")), "already_exists");
    assert.equal(await store.get(uid("b")), undefined);
    assert.equal(forked(await store.fork(await forkRequest(store, "a", 1, ...many.slice(1)))).length, FORK_CHILDREN_MAX);
  },

  "a projection that is not the parent's at the fork is refused": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("one"), output("two"));
    const request = await forkRequest(store, "a", 1, "b");
    const wrongs = [
      { ...request.projection, headHash: "0".repeat(64) },
      { ...request.projection, lastSeq: seq(2) },
    ];
    for (const projection of wrongs) await rejectsWith(store.fork({ ...request, projection }), "internal");
    assert.equal(await store.get(uid("b")), undefined);
  },
};
