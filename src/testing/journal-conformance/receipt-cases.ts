/** Receipts: kept beside the journal, changed with its appends. */

import assert from "node:assert/strict";
import type { Receipt } from "../../journal/index.ts";
import type { CaseTable } from "./conformance.ts";
import {
  append,
  appended,
  appendAs,
  claimAs,
  created,
  deletion,
  executionStart,
  fence,
  forked,
  forkRequest,
  HOST_A,
  output,
  seq,
  uid,
} from "./fixtures.ts";

const receipt = (key: string, state: Receipt["state"], more: Partial<Receipt> = {}): Receipt => ({
  key,
  callId: `call-${key}`,
  callSeq: seq(2),
  state,
  resultSeq: undefined,
  settledBy: undefined,
  ...more,
});

export const RECEIPT_CASES: CaseTable = {
  "a receipt is there with the append that brings it, in place of the one under its key": async ({ store }) => {
    await created(store, "a");
    assert.deepEqual(await store.receipts(uid("a"), { key: "k" }), []);
    const { fence: own } = appended(await store.append({ ...claimAs("a", HOST_A), events: [{ event: executionStart() }] }));
    appended(await store.append(appendAs("a", own, [output("call")], { receipts: [receipt("k", "started"), receipt("l", "intended")] })));
    assert.deepEqual(await store.receipts(uid("a"), { key: "k" }), [receipt("k", "started")]);
    const finished = receipt("k", "finished", { resultSeq: seq(3), callId: "another" });
    appended(await store.append(appendAs("a", own, [output("result")], { receipts: [finished] })));
    assert.deepEqual(await store.receipts(uid("a"), { key: "k" }), [finished]);
    assert.deepEqual(await store.receipts(uid("a"), { key: "l" }), [receipt("l", "intended")]);
    assert.deepEqual(await store.receipts(uid("nobody"), { key: "k" }), []);
  },

  "a receipt alone is an append; a refused append leaves none": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", executionStart());
    appended(await store.append({ ...claimAs("a", HOST_A, { leaseMs: 0 }), receipts: [receipt("k", "started")] }));
    assert.deepEqual(await store.receipts(uid("a"), { key: "k" }), [receipt("k", "started")]);
    const refused = await store.append(appendAs("a", fence(0), [output("x")], { receipts: [receipt("k", "finished")] }));
    assert.equal(refused.kind, "fenced");
    assert.deepEqual(await store.receipts(uid("a"), { key: "k" }), [receipt("k", "started")]);
  },

  "without a key those are found whose outcome is not known, by the seqs of their calls": async ({ store }) => {
    await created(store, "a");
    const states = ["intended", "started", "finished", "unknown", "done", "failed"] as const;
    const receipts = states.map((state, index) =>
      receipt(state, state, { callSeq: seq(9 - index), settledBy: state === "done" ? "somebody" : undefined }),
    );
    appended(await store.append({ ...claimAs("a", HOST_A, { leaseMs: 0 }), events: [{ event: executionStart() }], receipts }));
    assert.deepEqual(
      (await store.receipts(uid("a"))).map(({ key }) => key),
      ["unknown", "started"],
    );
    assert.equal((await store.receipts(uid("a"), { key: "done" }))[0]?.settledBy, "somebody");
  },

  "receipts are a session's own: a fork has none, and they go when it is reclaimed": async ({ store }) => {
    await created(store, "a");
    appended(
      await store.append({
        ...claimAs("a", HOST_A, { leaseMs: 0 }),
        events: [{ event: executionStart() }],
        receipts: [receipt("k", "started")],
      }),
    );
    forked(await store.fork(await forkRequest(store, "a", 1, "b")));
    assert.deepEqual(await store.receipts(uid("b")), []);
    await created(store, "c");
    appended(
      await store.append({
        ...claimAs("c", HOST_A, { leaseMs: 0 }),
        events: [{ event: executionStart() }],
        receipts: [receipt("k", "started")],
      }),
    );
    await append(store, "c", deletion());
    assert.equal((await store.reclaim(uid("c"))).kind, "reclaimed");
    await created(store, "c");
    assert.deepEqual(await store.receipts(uid("c")), []);
  },

  "receipts are there after opening again": async (test) => {
    if (test.reopen === undefined) return;
    await created(test.store, "a");
    appended(
      await test.store.append({
        ...claimAs("a", HOST_A, { leaseMs: 0 }),
        events: [{ event: executionStart() }],
        receipts: [receipt("k", "unknown", { resultSeq: seq(4) })],
      }),
    );
    await test.reopen();
    assert.deepEqual(await test.store.receipts(uid("a")), [receipt("k", "unknown", { resultSeq: seq(4) })]);
  },
};
