import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { EventSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { isDeeplyFrozen, SILENT_LOG, type Seq, type SessionUid } from "../base/index.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { messageText, textMessage, type Event } from "../spi/index.ts";
import type { JournalStore, ReadRequest, StoredRecord } from "../journal/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { seededPorts, testHarness, TestHost, TestTools, toolCall } from "../testing/index.ts";
import { MessageOrigins } from "./request-sketch.ts";
import { HistoryCache, JournalHistory } from "./history.ts";

async function journalOf(
  turns: number,
  word = "",
): Promise<{ journal: JournalStore; session: SessionUid; reads: ReadRequest[]; lastSeq: Seq }> {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const harness = testHarness(async (_, sink) => sink.output("x".repeat(100)));
  const host = new TestHost({ journal, ports, harnesses: { test: harness } });
  const session = await host.createSession();
  let lastSeq = 0 as Seq;
  for (let turn = 0; turn < turns; turn++) ({ lastSeq } = await (await host.begin(session, [`${word}${turn}`])).outcome);
  const reads: ReadRequest[] = [];
  const read = journal.read.bind(journal);
  journal.read = (request) => {
    reads.push(request);
    return read(request);
  };
  return { journal, session, reads, lastSeq };
}

async function seqsOf(history: JournalHistory, range: { fromSeq?: Seq; toSeq?: Seq } = {}): Promise<number[]> {
  const seqs: number[] = [];
  for await (const page of history.read(range)) seqs.push(...page.events.map((_, index) => page.firstSeq + index));
  return seqs;
}

const origins = new MessageOrigins();
const span = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe("a session's history", () => {
  it("is every event up to its last seq, in pages, and any range of it", async () => {
    const { journal, session, lastSeq } = await journalOf(200);
    const history = new JournalHistory(session, (lastSeq - 4) as Seq, { journal, cache: new HistoryCache({ bytesMax: 0 }), origins });
    expect(await seqsOf(history)).toEqual(span(1, 796));
    expect(await seqsOf(history, { fromSeq: 300 as Seq, toSeq: 301 as Seq })).toEqual([300, 301]);
    expect(await seqsOf(history, { fromSeq: 790 as Seq, toSeq: 900 as Seq })).toEqual(span(790, 796));
    expect(await seqsOf(history, { fromSeq: 797 as Seq })).toEqual([]);
  });

  it("reads from the store only what it has not decoded before, and whether its last record is still there", async () => {
    const { journal, session, reads } = await journalOf(10);
    const cache = new HistoryCache({ bytesMax: 1 << 20 });
    await seqsOf(new JournalHistory(session, 20 as Seq, { journal, cache, origins }));
    await seqsOf(new JournalHistory(session, 24 as Seq, { journal, cache, origins }));
    expect(await seqsOf(new JournalHistory(session, 24 as Seq, { journal, cache, origins }))).toEqual(span(1, 24));
    expect(reads.map(({ fromSeq, toSeq }) => [fromSeq, toSeq])).toEqual([
      [1, 20],
      [20, 24],
      [24, 24],
    ]);
  });

  it("is whole where the cache gives the session up while it is read", async () => {
    const { journal, session } = await journalOf(10);
    const cache = new HistoryCache({ bytesMax: 1 << 20 });
    await seqsOf(new JournalHistory(session, 20 as Seq, { journal, cache, origins }));
    const read = journal.read.bind(journal);
    journal.read = (request) => {
      cache.forget(session);
      return read(request);
    };
    expect(await seqsOf(new JournalHistory(session, 24 as Seq, { journal, cache, origins }))).toEqual(span(1, 24));
  });

  it("has each event once where it is read twice at a time", async () => {
    const { journal, session } = await journalOf(10);
    const cache = new HistoryCache({ bytesMax: 1 << 20 });
    const history = new JournalHistory(session, 40 as Seq, { journal, cache, origins });
    await seqsOf(history, { toSeq: 20 as Seq });
    const read = journal.read.bind(journal);
    const other = Promise.withResolvers<void>();
    let reads = 0;
    // The other reader goes first, and leaves more in the cache than this one has seen there.
    journal.read = async function* (request) {
      reads += 1;
      if (reads === 1) await other.promise;
      yield* read(request);
    };
    const slow = seqsOf(history);
    expect(await seqsOf(history)).toEqual(span(1, 40));
    other.resolve();
    expect(await slow).toEqual(span(1, 40));
  });

  it("is read behind what is cached, and over its end, without what is before", async () => {
    const { journal, session } = await journalOf(10);
    const cache = new HistoryCache({ bytesMax: 1 << 20 });
    const history = new JournalHistory(session, 40 as Seq, { journal, cache, origins });
    await seqsOf(history, { toSeq: 20 as Seq });
    const ranges = [
      [18, 23],
      [20, 20],
      [5, 7],
      [30, 31],
      [24, 40],
    ] as const;
    for (const [from, to] of ranges) {
      expect(await seqsOf(history, { fromSeq: from as Seq, toSeq: to as Seq })).toEqual(span(from, to));
    }
  });

  it("keeps no more than its bytes, and gives up the session that was used longest ago", () => {
    const cache = new HistoryCache({ bytesMax: 100 });
    const [first, second, third] = ["first" as SessionUid, "second" as SessionUid, "third" as SessionUid];
    const kept = (session: SessionUid) => cache.slice(session, 1 as Seq, 9 as Seq).length;
    const event = create(EventSchema);
    const sized = (bytes: number) => ({ bytes, hash: "h" });
    cache.extend(first, 1 as Seq, [event], sized(40));
    cache.extend(second, 1 as Seq, [event], sized(40));
    expect(kept(first)).toBe(1);
    cache.extend(third, 1 as Seq, [event], sized(40));
    expect([kept(first), kept(second), kept(third)]).toEqual([1, 0, 1]);
    cache.extend(third, 2 as Seq, [event], sized(61));
    expect([kept(third), cache.bytes]).toEqual([1, 80]);
  });

  it("does not take another journal's events for its own, though it has the same uid", async () => {
    const [old, young] = [await journalOf(10), await journalOf(3, "another")];
    expect(old.session).toBe(young.session);
    const cache = new HistoryCache({ bytesMax: 1 << 20 });
    await seqsOf(new JournalHistory(old.session, 40 as Seq, { journal: old.journal, cache, origins }));
    const history = new JournalHistory(young.session, 12 as Seq, { journal: young.journal, cache, origins });
    const texts: string[] = [];
    for await (const page of history.read())
      texts.push(...page.events.map(({ body }) => (body.case === "message" ? messageText(body.value) : "")));
    expect(texts.filter((text) => text !== "")).toEqual(
      ["another0", "xxx", "another1", "xxx", "another2", "xxx"].map((text) => text.replace("xxx", "x".repeat(100))),
    );
  });

  it("hands out frozen events: a harness that changes one is told, and no other turn sees it", async () => {
    const { journal, session } = await journalOf(1);
    const history = new JournalHistory(session, 4 as Seq, { journal, cache: new HistoryCache({ bytesMax: 0 }), origins });
    for await (const page of history.read()) {
      for (const { body } of page.events) {
        if (body.case === "message") expect(() => body.value.parts.pop()).toThrow(TypeError);
      }
    }
  });

  it("is not read again from a turn to the next one: what a turn recorded is what would be read of it", async () => {
    const ports = seededPorts();
    const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    const seen: Event[][] = [];
    const harness = testHarness(async (start, sink) => {
      const events: Event[] = [];
      for await (const page of start.history.read()) events.push(...page.events);
      seen.push(events);
      const { message, usage } = await sink.model({ model: "test", messages: [...start.inputs, textMessage("system", "x".repeat(300))] });
      await sink.usage(usage);
      const args = JSON.parse('{"n":0.1,"__proto__":[null]}') as JsonObject;
      const result = await sink.toolCall({ ...toolCall("look", "c1", { idempotencyKey: start.executionId }), args });
      await sink.output(`${messageText(message)} ${result.content.length}`);
    });
    const tools = new TestTools({ look: async () => ({ output: { a: [1, { b: "é" }], c: -0 }, error: "" }) });
    const host = new TestHost({ journal, ports, harnesses: { test: harness }, tools });
    const session = await host.createSession();
    const reads: ReadRequest[] = [];
    const read = journal.read.bind(journal);
    journal.read = (request) => {
      reads.push(request);
      return read(request);
    };
    for (let turn = 0; turn < 4; turn++) await (await host.begin(session, [`${turn}`])).outcome;
    expect(reads).toEqual([]);
    const lastSeq = (await journal.get(session))!.projection.lastSeq;
    const stored: Event[] = [];
    const anew = new JournalHistory(session, lastSeq, { journal, cache: new HistoryCache({ bytesMax: 0 }), origins });
    for await (const page of anew.read()) stored.push(...page.events);
    expect(seen.map((events) => events.length)).toEqual([0, 9, 18, 27]);
    for (const events of seen) {
      expect(isDeepStrictEqual(events, stored.slice(0, events.length))).toBe(true);
      expect(events.every((event) => isDeeplyFrozen(event))).toBe(true);
    }
  });

  it("is compared with the journal where another host has written meanwhile", async () => {
    const { journal, session } = await journalOf(3);
    const cache = new HistoryCache({ bytesMax: 1 << 20 });
    await seqsOf(new JournalHistory(session, 12 as Seq, { journal, cache, origins }));
    const head = { seq: 12 as Seq, hash: "another" };
    const history = new JournalHistory(session, 12 as Seq, { journal, cache, origins, head });
    const reads: ReadRequest[] = [];
    const read = journal.read.bind(journal);
    journal.read = (request) => {
      reads.push(request);
      return read(request);
    };
    expect(await seqsOf(history)).toEqual(span(1, 12));
    expect(reads).toHaveLength(1);
    const known = new JournalHistory(session, 12 as Seq, { journal, cache, origins, head: cache.endOf(session) });
    expect(await seqsOf(known, { fromSeq: 12 as Seq })).toEqual([12]);
    expect(reads).toHaveLength(1);
  });

  it("keeps nothing of a turn that has not read it, and nothing behind a gap", async () => {
    const { journal, session } = await journalOf(2);
    const records: StoredRecord[] = [];
    for await (const page of journal.read({ session })) records.push(...page);
    const events = records.map(({ bytes }) => ({ event: decodeLogRecord(bytes).event! }));
    const committed = (from: number) => ({ records: records.slice(from), events: events.slice(from) });
    const cache = new HistoryCache({ bytesMax: 1 << 20 });
    new JournalHistory(session, 4 as Seq, { journal, cache, origins }).follow(committed(4));
    expect(cache.endOf(session)).toBeUndefined();
    const history = new JournalHistory(session, 4 as Seq, { journal, cache, origins });
    await seqsOf(history);
    history.follow(committed(5));
    expect(cache.endOf(session)?.seq).toBe(4);
    history.follow(committed(4));
    expect(cache.endOf(session)).toEqual({ seq: 8, hash: records.at(-1)!.contentHash });
  });

  it("never keeps a prefix with a gap", async () => {
    const { journal, session } = await journalOf(5);
    const cache = new HistoryCache({ bytesMax: 1 << 20 });
    await seqsOf(new JournalHistory(session, 20 as Seq, { journal, cache, origins }), { fromSeq: 9 as Seq });
    expect(cache.bytes).toBe(0);
  });
});
