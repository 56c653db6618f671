/** Creating sessions and reading their rows. */

import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { IdentityRefSchema, OriginSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { EMPTY_PROJECTION } from "../../journal/index.ts";
import type { CaseTable } from "./conformance.ts";
import { appendAs, created, deletion, recordsOf, rowOf, seedOf, uid } from "./fixtures.ts";

export const CREATE_CASES: CaseTable = {
  "a new session has no record, no writer and version 1": async ({ store }) => {
    const row = await created(store, "a", { createTimeMs: 5_000 });
    assert.deepEqual(row.projection, EMPTY_PROJECTION);
    assert.deepEqual([row.version, row.fence, row.holder, row.parent, row.compute], [1, 0, undefined, undefined, undefined]);
    assert.equal(row.seed.createTimeMs, 5_000);
    assert.deepEqual(await recordsOf(store, "a"), []);
    assert.deepEqual(await rowOf(store, "a"), row);
  },

  "a seed comes back as it was given": async (test) => {
    const seed = seedOf("seed", {
      project: "blue/β",
      name: "первый",
      harness: "chat",
      model: "m-1",
      identity: create(IdentityRefSchema, { principal: "user:ann", issuer: "https://issuer.example", subject: "7" }),
      origin: create(OriginSchema, { source: "api", uri: "urn:x", attributes: { ip: "::1" } }),
      labels: { team: "red", "": "empty key" },
      annotations: { note: "😀 \u0000 control" },
      createTimeMs: 1_700_000_000_123,
    });
    await test.store.create(seed);
    await test.reopen?.();
    assert.deepEqual((await rowOf(test.store, "seed")).seed, seed);
  },

  "an unknown uid has no row": async ({ store }) => {
    assert.equal(await store.get(uid("nobody")), undefined);
  },

  "a uid is taken once": async ({ store }) => {
    await created(store, "a", { labels: { first: "yes" } });
    assert.deepEqual(await store.create(seedOf("a")), { kind: "uid-taken" });
    assert.deepEqual((await rowOf(store, "a")).seed.labels, { first: "yes" });
  },

  "a name is taken once in a project; no name never is": async ({ store }) => {
    await created(store, "a", { project: "p", name: "n" });
    assert.deepEqual(await store.create(seedOf("b", { project: "p", name: "n" })), { kind: "name-taken" });
    assert.equal(await store.get(uid("b")), undefined);
    await created(store, "c", { project: "q", name: "n" });
    await created(store, "d", { project: "p", name: "" });
    await created(store, "e", { project: "p", name: "" });
  },

  "of two sessions that want one name in one tick, one gets it": async ({ store }) => {
    const outcomes = await Promise.all(["a", "b"].map((name) => store.create(seedOf(name, { name: "wanted" }))));
    assert.deepEqual(
      outcomes.map(({ kind }) => kind),
      ["created", "name-taken"],
    );
  },

  "a deleted session gives its name back, in the same tick too": async ({ store }) => {
    const { fence } = await created(store, "a", { name: "n" });
    const deleted = store.append(appendAs("a", fence, [deletion()]));
    const outcome = await store.create(seedOf("b", { name: "n" }));
    assert.deepEqual([(await deleted).kind, outcome.kind], ["appended", "created"]);
    assert.deepEqual(await store.create(seedOf("c", { name: "n" })), { kind: "name-taken" });
    assert.deepEqual(await store.create(seedOf("a")), { kind: "uid-taken" });
  },
};
