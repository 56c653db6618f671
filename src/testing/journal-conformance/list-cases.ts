/** Listings. */

import assert from "node:assert/strict";
import type { JournalStore, ListRequest } from "../../journal/index.ts";
import type { CaseTable } from "./conformance.ts";
import {
  append,
  approvalRequest,
  created,
  deletion,
  end,
  executionStart,
  forked,
  forkRequest,
  output,
  rejectsWith,
  toolResult,
  uid,
} from "./fixtures.ts";

/** More rows than any case has. */
const ROWS_MAX = 100;

/** The uids of a whole listing, read in pages of `limit`. */
async function listed(store: JournalStore, request: Omit<ListRequest, "limit">, limit = 3): Promise<string[]> {
  const uids: string[] = [];
  let after = request.after;
  for (;;) {
    const { rows, next } = await store.list({ ...request, limit, after });
    assert.ok(rows.length <= limit, "a page has at most as many rows as were asked for");
    uids.push(...rows.map((row) => row.seed.uid));
    assert.ok(uids.length <= ROWS_MAX, "the listing ends");
    if (next === undefined) return uids;
    assert.equal(rows.length, limit, "only the last page may be short");
    after = next;
  }
}

export const LIST_CASES: CaseTable = {
  "newest first, then by uid, with no row missed or repeated over pages": async ({ store }) => {
    const times = { d: 300, a: 200, c: 200, b: 200, é: 200, "😀": 200, "\uffff": 200, e: 100, f: 400 };
    for (const [name, createTimeMs] of Object.entries(times)) await created(store, name, { createTimeMs });
    const order = ["f", "d", "a", "b", "c", "é", "\uffff", "😀", "e"];
    for (const limit of [1, 2, 3, 4, 8, 9, 50]) assert.deepEqual(await listed(store, {}, limit), order);
  },

  "the last page has no next, even when it is full": async ({ store }) => {
    for (const name of ["a", "b"]) await created(store, name);
    assert.equal((await store.list({ limit: 2 })).next, undefined);
    assert.deepEqual((await store.list({ limit: 1 })).next, { createTimeMs: 1_000, uid: "a" });
    assert.deepEqual(await store.list({ limit: 5, project: "none" }), { rows: [], next: undefined });
  },

  "a listing is stable while sessions are created and deleted": async ({ store }) => {
    for (let index = 0; index < 6; index++) await created(store, `s${index}`, { createTimeMs: 1_000 + index });
    const first = await store.list({ limit: 3 });
    await created(store, "new", { createTimeMs: 2_000 });
    await append(store, "s1", deletion());
    assert.ok(first.next);
    assert.deepEqual(await listed(store, { after: first.next }), ["s2", "s0"]);
  },

  "rows are what `get` gives": async ({ store }) => {
    await created(store, "a", { labels: { x: "y" } });
    await append(store, "a", executionStart(), output("x"));
    const { rows } = await store.list({ limit: 1 });
    assert.deepEqual(rows[0], await store.get(uid("a")));
  },

  "a project is matched exactly; the empty one is a project, and none means all": async ({ store }) => {
    await created(store, "a", { project: "p" });
    await created(store, "b", { project: "p2" });
    await created(store, "c");
    assert.deepEqual(await listed(store, { project: "p" }), ["a"]);
    assert.deepEqual(await listed(store, { project: "" }), ["c"]);
    assert.deepEqual(await listed(store, {}), ["a", "b", "c"]);
  },

  "deleted sessions are listed only when asked for": async ({ store }) => {
    for (const name of ["a", "b"]) await created(store, name);
    await append(store, "a", deletion());
    assert.deepEqual(await listed(store, {}), ["b"]);
    assert.deepEqual(await listed(store, { project: "" }), ["b"]);
    assert.deepEqual(await listed(store, { includeDeleted: true }), ["a", "b"]);
    assert.deepEqual(await listed(store, { includeDeleted: true, project: "" }), ["a", "b"]);
  },

  "open turns and open approvals are found while they are open": async ({ store }) => {
    for (const name of ["idle", "turn", "parked", "done"]) await created(store, name);
    await append(store, "turn", executionStart());
    await append(store, "parked", executionStart(), approvalRequest("call-1"));
    await append(store, "done", executionStart(), end());
    assert.deepEqual(await listed(store, { openTurn: true }), ["parked", "turn"]);
    assert.deepEqual(await listed(store, { openTurn: false }), ["done", "idle"]);
    assert.deepEqual(await listed(store, { openApproval: true }), ["parked"]);
    assert.deepEqual(await listed(store, { openApproval: false }), ["done", "idle", "turn"]);
    assert.deepEqual(await listed(store, { openTurn: true, openApproval: false }), ["turn"]);
    await append(store, "parked", toolResult("call-1"));
    assert.deepEqual(await listed(store, { openApproval: true }), []);
    await append(store, "parked", end());
    assert.deepEqual(await listed(store, { openTurn: true }), ["turn"]);
  },

  "children are found by their parent, and sessions by their age": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("x"));
    forked(await store.fork(await forkRequest(store, "a", 1, "b", "c")));
    forked(await store.fork(await forkRequest(store, "b", 1, "grandchild")));
    assert.deepEqual(await listed(store, { parent: uid("a") }), ["b", "c"]);
    assert.deepEqual(await listed(store, { parent: uid("c") }), []);
    await created(store, "young", { createTimeMs: 5_000 });
    assert.deepEqual(await listed(store, { sinceMs: 5_000 }), ["young"]);
    assert.deepEqual(await listed(store, { sinceMs: 5_001 }), []);
  },

  "every combination of filters is served": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", executionStart(), approvalRequest("call-1"));
    forked(await store.fork(await forkRequest(store, "a", 2, "b")));
    for (const request of combinations()) {
      const uids = await listed(store, request);
      const expected =
        request.openTurn === false || request.openApproval === false ? [] : request.parent === undefined ? ["a", "b"] : ["b"];
      assert.deepEqual(uids, expected, JSON.stringify(request));
    }
  },

  "a limit that is no positive whole number is INVALID_ARGUMENT": async ({ store }) => {
    for (const limit of [0, -1, 1.5, Number.NaN]) await rejectsWith(store.list({ limit }), "invalid_argument");
  },
};

function combinations(): Omit<ListRequest, "limit">[] {
  const flags = [undefined, true, false];
  return [undefined, ""].flatMap((project) =>
    [undefined, uid("a")].flatMap((parent) =>
      flags.flatMap((openTurn) =>
        flags.flatMap((openApproval) =>
          [undefined, true].flatMap((includeDeleted) =>
            [undefined, 1_000].map((sinceMs) => ({ project, parent, openTurn, openApproval, includeDeleted, sinceMs })),
          ),
        ),
      ),
    ),
  );
}
