/** Each case must be able to fail: a store with one fault planted in it does not pass. */

import { describe, expect, it } from "vitest";
import type { Fence, Seq } from "../../base/index.ts";
import { decodeLogRecord, encodeLogRecord } from "../../canon/index.ts";
import type { AppendRequest, CommitListener, JournalStore, Writer } from "../../journal/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { testDigest } from "../ports.ts";
import { journalStoreCases, storeUnderTest } from "./index.ts";

type Planted = (sound: JournalStore) => Partial<JournalStore>;

/** A store that does what `sound` does but for what is planted. */
function plant(sound: JournalStore, planted: Planted): JournalStore {
  return {
    name: "faulty",
    create: (seed, options) => sound.create(seed, options),
    get: (session, options) => sound.get(session, options),
    list: (request) => sound.list(request),
    append: (request, options) => sound.append(request, options),
    read: (request) => sound.read(request),
    readAsides: (request) => sound.readAsides(request),
    receipts: (session, query) => sound.receipts(session, query),
    fork: (request, options) => sound.fork(request, options),
    reclaim: (session, options) => sound.reclaim(session, options),
    adopt: (request, options) => sound.adopt(request, options),
    complete: (sessions, options) => sound.complete(sessions, options),
    renew: (request) => sound.renew(request),
    watch: (session, listener) => sound.watch(session, listener),
    ready: (options) => sound.ready(options),
    [Symbol.asyncDispose]: () => sound[Symbol.asyncDispose](),
    ...planted(sound),
  };
}

async function failedCases(planted: Planted): Promise<string[]> {
  const open = () => storeUnderTest(async (clock) => plant(createMemoryStore({ clock, digest: testDigest }), planted), { survives: false });
  const failed: string[] = [];
  for (const { name, run } of journalStoreCases(open)) await run().catch(() => failed.push(name));
  return failed;
}

function rewriting(change: (request: AppendRequest) => AppendRequest): Planted {
  return (sound) => ({ append: (request, options) => sound.append(change(request), options) });
}

function writerChanged(change: (writer: Writer) => Writer): Planted {
  return rewriting((request) => ({ ...request, writer: change(request.writer) }));
}

/** What is planted, and the case that must notice. */
const FAULTS: Readonly<Record<string, { readonly planted: Planted; readonly noticedBy: string }>> = {
  "the expected seq is not looked at": {
    planted: rewriting((request) => ({ ...request, expectedLastSeq: undefined })),
    noticedBy: "append: a stale or a future seq is a conflict, and nothing of the append remains",
  },
  "receipts are forgotten": {
    planted: rewriting((request) => ({ ...request, receipts: [] })),
    noticedBy: "receipt: a receipt is there with the append that brings it, in place of the one under its key",
  },
  "every receipt is unsettled": {
    planted: (sound) => ({
      receipts: async (session, query) => {
        const keys = ["intended", "started", "finished", "unknown", "done", "failed"];
        const found = query?.key === undefined ? await Promise.all(keys.map((key) => sound.receipts(session, { key }))) : undefined;
        return found?.flat() ?? sound.receipts(session, query);
      },
    }),
    noticedBy: "receipt: without a key those are found whose outcome is not known, by the seqs of their calls",
  },
  "any fence will do": {
    planted: (sound) => ({
      append: async (request, options) => {
        const { writer } = request;
        const row = await sound.get(request.session);
        if (writer.kind === "claim" || row === undefined) return sound.append(request, options);
        return sound.append({ ...request, writer: { ...writer, fence: row.fence } }, options);
      },
    }),
    noticedBy: "writer: a superseded fence is refused, whatever it asks, and nothing remains",
  },
  "every claim takes over": {
    planted: writerChanged((writer) => (writer.kind === "claim" ? { ...writer, takeOver: true } : writer)),
    noticedBy: "writer: another host's live lease holds the session; the holder itself may claim again",
  },
  "leases never end": {
    planted: writerChanged((writer) => (writer.kind === "claim" ? { ...writer, leaseMs: 1e12 } : writer)),
    noticedBy: "writer: a lease that ran out holds nobody off, and is not shown",
  },
  "a release keeps the lease": {
    planted: writerChanged((writer) => (writer.kind === "release" ? { ...writer, kind: "hold" } : writer)),
    noticedBy: "writer: a release ends the lease with its append, and the fence goes on",
  },
  "a kept fence is minted anew": {
    planted: writerChanged((writer) => (writer.kind === "claim" ? { ...writer, keep: undefined } : writer)),
    noticedBy: "writer: a claim may keep the newest fence, and no other",
  },
  "the second half of an append is lost": {
    planted: rewriting((request) => ({ ...request, events: request.events.slice(0, Math.ceil(request.events.length / 2)) })),
    noticedBy: "append: records are numbered from 1, link to each other and hold the events",
  },
  "compute is not kept": {
    planted: rewriting((request) => ({ ...request, compute: undefined })),
    noticedBy: "append: compute changes without an event; null removes it",
  },
  "asides are not kept": {
    planted: rewriting((request) => ({ ...request, events: request.events.map(({ event }) => ({ event })) })),
    noticedBy: "read: what is kept beside records is read by seq, and is not in the record",
  },
  "a lost renewal is not told": {
    planted: (sound) => ({ renew: async (request) => (await sound.renew(request)).slice(0, 0) }),
    noticedBy: "writer: a renewal extends leases and names those that were lost",
  },
  "names are not compared": {
    planted: (sound) => ({ create: (seed, options) => sound.create({ ...seed, name: "" }, options) }),
    noticedBy: "create: a name is taken once in a project; no name never is",
  },
  "a read goes to the head": {
    planted: (sound) => ({ read: (request) => sound.read({ ...request, toSeq: undefined }) }),
    noticedBy: "read: a range includes both ends and is cut at the head",
  },
  "pages are as the store likes": {
    planted: (sound) => ({ read: (request) => sound.read({ ...request, pageRecordsMax: 1_000 }) }),
    noticedBy: "read: a read gives pages in order, of 256 records unless asked otherwise",
  },
  "a read follows the head": {
    planted: (sound) => ({
      async *read(request) {
        for (let next = request.fromSeq ?? (1 as Seq); ;) {
          const pages = sound.read({ ...request, fromSeq: next })[Symbol.asyncIterator]();
          const page = await pages.next();
          if (page.done === true) return;
          yield page.value;
          next = (next + page.value.length) as Seq;
        }
      },
    }),
    noticedBy: "read: a read ends at the head it began with",
  },
  "deleted sessions are listed": {
    planted: (sound) => ({ list: (request) => sound.list({ ...request, includeDeleted: true }) }),
    noticedBy: "list: deleted sessions are listed only when asked for",
  },
  "a page's last row comes again": {
    planted: (sound) => ({
      list: async (request) => {
        const page = await sound.list(request);
        const cursor = page.next && { ...page.next, createTimeMs: page.next.createTimeMs + 1 };
        return { ...page, next: cursor };
      },
    }),
    noticedBy: "list: the last page has no next, even when it is full",
  },
  "a fork begins at its parent's fence": {
    planted: (sound) => ({
      fork: async (request, options) => {
        const outcome = await sound.fork(request, options);
        if (outcome.kind !== "forked") return outcome;
        return { ...outcome, rows: outcome.rows.map((row) => ({ ...row, fence: (row.fence - 1) as Fence })) };
      },
    }),
    noticedBy: "fork: children share the prefix record for record and begin with a marker under a higher fence",
  },
  "a fork takes any head": {
    planted: (sound) => ({ fork: (request, options) => sound.fork({ ...request, expectedLastSeq: undefined }, options) }),
    noticedBy: "fork: refusals: unknown, deleted, past the head, a moved head",
  },
  "a reclaim takes what children share": {
    planted: (sound) => {
      const gone = new Set<string>();
      return {
        reclaim: async (session, options) => {
          const outcome = await sound.reclaim(session, options);
          if (outcome.kind === "kept") gone.add(session);
          return outcome.kind === "kept" ? { kind: "reclaimed" } : outcome;
        },
        get: async (session, options) => (gone.has(session) ? undefined : sound.get(session, options)),
      };
    },
    noticedBy: "reclaim: the prefix that children share stays, and can be read through them",
  },
  "a reclaim only says so": {
    planted: () => ({ reclaim: async () => ({ kind: "reclaimed" }) }),
    noticedBy: "reclaim: a session that nobody shares is gone: its row, its records and what was beside them",
  },
  "adopted records are sealed anew": {
    planted: (sound) => ({
      adopt: async (request, options) => {
        const records = request.records.map(({ bytes, aside }) => {
          const { seq, prevHash, contentHash, event } = decodeLogRecord(bytes);
          return { bytes: encodeLogRecord({ seq: Number(seq) as Seq, prevHash, contentHash, fence: 1 as Fence, event: event! }), aside };
        });
        return sound.adopt({ ...request, records }, options);
      },
    }),
    noticedBy: "adopt: records are kept byte for byte, and the next writer's fence is above theirs",
  },
  "adopted sessions can be used at once": {
    planted: (sound) => ({
      adopt: async (request, options) => {
        const outcome = await sound.adopt(request, options);
        await sound.complete([request.seed.uid]);
        return outcome;
      },
    }),
    noticedBy: "adopt: until it is complete a session is like a deleted one: not listed, not used, its name not taken",
  },
  "an adoption takes any head": {
    planted: (sound) => ({
      adopt: async (request, options) => {
        const row = await sound.get(request.seed.uid);
        const after = row === undefined ? request.after : { seq: row.projection.lastSeq, hash: row.projection.headHash };
        return sound.adopt({ ...request, after }, options);
      },
    }),
    noticedBy: "adopt: a session may come in pieces, and each piece must follow the last",
  },
  "sessions are completed one by one": {
    planted: (sound) => ({
      complete: async (sessions, options) => {
        let outcome = await sound.complete([], options);
        for (const session of sessions) outcome = await sound.complete([session], options);
        return outcome;
      },
    }),
    noticedBy: "adopt: sessions are completed together or not at all; those that are complete stay as they are",
  },
  "watchers are told twice": {
    planted: (sound) => ({
      watch: (session, listener) => {
        const both = [sound.watch(session, listener), sound.watch(session, listener)];
        return () => both.forEach((unwatch) => unwatch());
      },
    }),
    noticedBy: "watch: a watcher is told of every commit of its session, in order, each once",
  },
  "a watcher is told after the answer": {
    planted: (sound) => ({
      watch: (session, listener) => {
        const late: CommitListener = (records) => {
          try {
            listener(records);
          } catch {
            // Some cases have listeners that throw.
          }
        };
        return sound.watch(session, (records) => setTimeout(late, 1, records));
      },
    }),
    noticedBy: "watch: it is told after the record can be read, and before whoever appended is answered",
  },
  "a watch does not end": {
    planted: (sound) => ({
      watch: (session, listener) => {
        sound.watch(session, listener);
        return () => undefined;
      },
    }),
    noticedBy: "watch: a watch ends when it is told to, also from within; ending it twice does nothing",
  },
  "a closed store is ready": {
    planted: () => ({ ready: async () => undefined }),
    noticedBy: "lifetime: an open store is ready; a closed one answers nothing and says UNAVAILABLE",
  },
  "a signal is not looked at": {
    planted: (sound) => ({ append: (request) => sound.append(request) }),
    noticedBy: "append: a call whose signal has fired does nothing and rejects as CANCELLED, or with the signal's own HoldfastError",
  },
  "every fiftieth append is answered and lost": {
    planted: (sound) => {
      let count = 0;
      return {
        append: async (request, options) => {
          if (++count % 50 !== 0) return sound.append(request, options);
          const row = await sound.get(request.session);
          if (row === undefined) return { kind: "not-found" };
          return { kind: "appended", records: [], fence: row.fence, projection: row.projection };
        },
      };
    },
    noticedBy: "append: appends of one tick keep the order of their calls, over many sessions",
  },
};

describe("the conformance suite notices when", () => {
  it.each(Object.entries(FAULTS))("%s", async (_, { planted, noticedBy }) => {
    expect(await failedCases(planted)).toContain(noticedBy);
  });

  it("nothing is wrong with a sound store", async () => {
    expect(await failedCases(() => ({}))).toEqual([]);
  });
});
