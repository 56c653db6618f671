/** Watching commits. */

import assert from "node:assert/strict";
import type { CaseTable } from "./conformance.ts";
import {
  append,
  appendAs,
  claimAs,
  created,
  fence,
  forked,
  forkRequest,
  HOST_A,
  output,
  recordsOf,
  seq,
  textsOf,
  uid,
} from "./fixtures.ts";

export const WATCH_CASES: CaseTable = {
  "a watcher is told of every commit of its session, in order, each once": async ({ store }) => {
    await Promise.all(["a", "b"].map((name) => created(store, name)));
    const told: string[][] = [];
    store.watch(uid("a"), (records) => told.push(textsOf(records)));
    const texts = Array.from({ length: 50 }, (_, index) => `${index}`);
    await Promise.all(
      texts.flatMap((text) => [
        store.append(appendAs("a", fence(0), [output(text)])),
        store.append(appendAs("b", fence(0), [output("b")])),
      ]),
    );
    assert.deepEqual(
      told,
      texts.map((text) => [text]),
    );
  },

  "it is told after the record can be read, and before whoever appended is answered": async ({ store }) => {
    await created(store, "a");
    const order: string[] = [];
    const seen = new Promise<string[]>((resolve) => {
      store.watch(uid("a"), () => {
        order.push("told");
        resolve(recordsOf(store, "a").then(textsOf));
      });
    });
    await store.append(appendAs("a", fence(0), [output("x")])).then(() => order.push("answered"));
    assert.deepEqual(await seen, ["x"]);
    assert.deepEqual(order, ["told", "answered"]);
  },

  "a change of the row alone is told with no records; what is refused or changes nothing is not told": async ({ store }) => {
    await created(store, "a");
    const told: number[] = [];
    store.watch(uid("a"), (records) => told.push(records.length));
    await store.append(claimAs("a", HOST_A));
    await store.append(appendAs("a", fence(0), [output("fenced")]));
    await store.append(appendAs("a", fence(1), [output("conflict")], { expectedLastSeq: seq(9) }));
    await store.append(appendAs("a", fence(1), []));
    await store.renew({ holder: HOST_A, leaseMs: 1_000, sessions: [{ session: uid("a"), fence: fence(1) }] });
    assert.deepEqual(told, [0]);
  },

  "several watchers are told; one that throws is dropped and disturbs nobody": async ({ store }) => {
    await created(store, "a");
    const told: string[] = [];
    store.watch(uid("a"), (records) => {
      told.push(`bad ${textsOf(records).join()}`);
      throw new Error("a listener's own fault");
    });
    store.watch(uid("a"), (records) => told.push(`good ${textsOf(records).join()}`));
    assert.equal((await append(store, "a", output("1"))).kind, "appended");
    await append(store, "a", output("2"));
    assert.deepEqual(told, ["bad 1", "good 1", "good 2"]);
    assert.deepEqual(textsOf(await recordsOf(store, "a")), ["1", "2"]);
  },

  "a watch ends when it is told to, also from within; ending it twice does nothing": async ({ store }) => {
    await created(store, "a");
    const told: string[] = [];
    const once = store.watch(uid("a"), () => {
      told.push("once");
      once();
    });
    const other = store.watch(uid("a"), () => told.push("other"));
    await append(store, "a", output("1"));
    once();
    await append(store, "a", output("2"));
    other();
    other();
    await append(store, "a", output("3"));
    assert.deepEqual(told, ["once", "other", "other"]);
  },

  "a fork tells watchers of the child of its marker, and those of the parent nothing": async ({ store }) => {
    await created(store, "a");
    await append(store, "a", output("x"));
    const told: string[] = [];
    store.watch(uid("a"), () => told.push("parent"));
    store.watch(uid("b"), (records) => told.push(`child ${records.map((record) => record.seq).join()}`));
    forked(await store.fork(await forkRequest(store, "a", 1, "b")));
    assert.deepEqual(told, ["child 2"]);
  },
};
