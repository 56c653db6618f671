import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError, type SessionUid } from "../base/index.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { ChainFault_Kind, TailRequest_Until, TailRequestSchema, VerifyRequestSchema } from "../gen/holdfast/v1/journal_pb.ts";
import type { JournalStore, SessionRow, StoredRecord } from "../journal/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { harnessCatalog, seededPorts, storyOf, testHarness, TestHost, type HarnessRun } from "../testing/index.ts";
import { ALLOW_ALL } from "./access.ts";
import type { CallContext, JournalService, StreamItem } from "./contract.ts";
import { createJournalService } from "./journal.ts";

const ports = seededPorts(5);

/** `spoil` changes what the service reads, as a damaged store would. */
function bench(run: HarnessRun = speak, spoil: (inner: JournalStore) => Partial<JournalStore> = () => ({})) {
  const journal = createMemoryStore(ports);
  const harnesses = { test: testHarness(run) };
  const host = new TestHost({ journal, ports, harnesses });
  onTestFinished(() => host[Symbol.asyncDispose]());
  const spoiled = new Proxy(journal, {
    get(target, key) {
      const changed: unknown = Reflect.get(spoil(journal), key);
      const own: unknown = changed ?? Reflect.get(target, key);
      return typeof own === "function" ? (own.bind(target) as unknown) : own;
    },
  });
  const service = createJournalService({
    journal: spoiled,
    controller: host.controller,
    harnesses: harnessCatalog(harnesses),
    authorizer: ALLOW_ALL,
    ports,
  });
  return { host, service };
}

const speak: HarnessRun = async (start, sink) => {
  for (const input of start.inputs) await sink.output(`heard ${input.parts.length}`);
};

const context = (signal: AbortSignal = new AbortController().signal): CallContext => ({ caller: { identity: undefined }, signal });

function tail(service: JournalService, session: string, more: MessageInitShape<typeof TailRequestSchema> = {}, signal?: AbortSignal) {
  return service.tail(create(TailRequestSchema, { session, ...more }), context(signal));
}

async function words(stream: AsyncIterable<StreamItem>): Promise<string[]> {
  const told: string[] = [];
  for await (const item of stream) told.push(wordOf(item));
  return told;
}

function wordOf(item: StreamItem): string {
  if (item.kind !== "record") return item.kind;
  const { event } = decodeLogRecord(item.record.bytes);
  return `${item.record.seq} ${event === undefined ? "?" : storyOf(event)}`;
}

const firstTurn = ["1 EXECUTION_START", "2 INPUT hello", "3 OUTPUT heard 1", "4 END COMPLETED"];

async function oneTurn(host: TestHost): Promise<SessionUid> {
  const session = await host.createSession();
  await (
    await host.begin(session, ["hello"])
  ).outcome;
  return session;
}

describe("Tail", () => {
  it("tells the session first and what is committed, and ends at the head when asked to", async () => {
    const { host, service } = bench();
    const session = await oneTurn(host);
    expect(await words(tail(service, session, { until: TailRequest_Until.HEAD }))).toEqual(["session", ...firstTurn]);
  });

  it("begins at a cursor, and is at its end at once with one past the head", async () => {
    const { host, service } = bench();
    const session = await oneTurn(host);
    const from = (fromSeq: bigint, until: TailRequest_Until) => words(tail(service, session, { fromSeq, until }));
    expect(await from(4n, TailRequest_Until.HEAD)).toEqual(["session", firstTurn[3]]);
    expect(await from(5n, TailRequest_Until.HEAD)).toEqual(["session"]);
    expect(await from(5n, TailRequest_Until.IDLE)).toEqual(["session"]);
  });

  it("goes on without loss or repetition wherever an earlier one stopped", async () => {
    const { host, service } = bench();
    const session = await oneTurn(host);
    await (
      await host.begin(session, ["hello"])
    ).outcome;
    const whole = await words(tail(service, session, { until: TailRequest_Until.HEAD }));
    for (let cut = 1; cut < whole.length; cut++) {
      const seen: string[] = [];
      for await (const item of tail(service, session)) {
        if (item.kind === "record") seen.push(wordOf(item));
        if (seen.length === cut) break;
      }
      const rest = await words(tail(service, session, { fromSeq: BigInt(cut + 1), until: TailRequest_Until.HEAD }));
      expect(["session", ...seen, ...rest.slice(1)]).toEqual(whole);
    }
  });

  it("follows a turn while it runs and ends once nothing runs", async () => {
    const go = Promise.withResolvers<void>();
    const { host, service } = bench(async (_start, sink) => {
      await go.promise;
      await sink.output("late");
    });
    const session = await host.createSession();
    await host.begin(session, ["hello"]);
    const stream = tail(service, session, { until: TailRequest_Until.IDLE });
    const first = [await stream.next(), await stream.next(), await stream.next()];
    expect(first.map(({ value }) => (value === undefined ? "" : wordOf(value)))).toEqual(["session", ...firstTurn.slice(0, 2)]);
    go.resolve();
    expect((await words(stream)).filter((word) => word !== "delta")).toEqual(["3 OUTPUT late", "4 END COMPLETED"]);
  });

  it("waits for another host's turn by reading the session again", async () => {
    const { host, service } = bench();
    const session = await host.createSession();
    const other = await host.journal.append({
      session,
      writer: { kind: "claim", holder: "other-host" as never, leaseMs: 1_500 },
      events: [],
    });
    expect(other.kind).toBe("appended");
    const ended = words(tail(service, session, { until: TailRequest_Until.IDLE }));
    for (let turns = 0; turns < 50; turns++) await Promise.resolve();
    let isOver = false;
    void ended.then(() => (isOver = true));
    ports.clock.advance(1_000);
    for (let turns = 0; turns < 50; turns++) await Promise.resolve();
    expect(isOver).toBe(false);
    ports.clock.advance(1_000);
    expect(await ended).toEqual(["session"]);
  });

  it("follows until the caller has enough", async () => {
    const { host, service } = bench();
    const session = await oneTurn(host);
    const enough = new AbortController();
    const stream = tail(service, session, {}, enough.signal);
    for (let count = 0; count < 5; count++) await stream.next();
    const next = stream.next();
    await (
      await host.begin(session, ["more"])
    ).outcome;
    expect(wordOf((await next).value as StreamItem)).toBe("5 EXECUTION_START");
    enough.abort(new HoldfastError("unavailable", "the server is shutting down"));
    await expect(words(stream)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("ends by itself when the session is deleted, before it and after it", async () => {
    const { host, service } = bench();
    const session = await oneTurn(host);
    const following = words(tail(service, session));
    await host.controller.delete(session, undefined);
    const told = await following;
    expect(told.at(-1)).toMatch(/^5 LIFECYCLE/);
    expect(await words(tail(service, session))).toEqual(told);
    expect(await words(tail(service, session, { fromSeq: 100n }))).toEqual(["session"]);
  });

  it("leaves deltas out when asked to", async () => {
    const { host, service } = bench(async (_start, sink) => {
      await sink.model({ model: "test", messages: [] });
    });
    const kinds = async (omitDeltas: boolean): Promise<Set<string>> => {
      const session = await host.createSession();
      const stream = tail(service, session, { until: TailRequest_Until.UNSPECIFIED, omitDeltas });
      const seen = new Set<string>();
      await stream.next();
      const next = stream.next();
      void host.begin(session, ["hello"]);
      for (let item = await next; item.done !== true; item = await stream.next()) {
        seen.add(item.value.kind);
        if (wordOf(item.value).includes("END ")) break;
      }
      await stream.return();
      return seen;
    };
    expect(await kinds(false)).toEqual(new Set(["record", "delta"]));
    expect(await kinds(true)).toEqual(new Set(["record"]));
  });

  it("fails with the store when it cannot be read, instead of ending", async () => {
    let reads = 0;
    const { host, service } = bench(speak, (inner) => ({
      get: (session) => {
        if (reads++ === 1) throw new HoldfastError("unavailable", "journal: cannot be read");
        return inner.get(session);
      },
    }));
    const session = await oneTurn(host);
    await expect(words(tail(service, session, { until: TailRequest_Until.IDLE }))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("is NOT_FOUND for an unknown session", async () => {
    const { service } = bench();
    await expect(words(tail(service, "nobody"))).rejects.toMatchObject({ code: "not_found", field: "session" });
  });
});

describe("Verify", () => {
  const verify = (service: JournalService, session: string) => service.verify(create(VerifyRequestSchema, { session }), context());

  it("finds an intact chain intact, an empty one too", async () => {
    const { host, service } = bench();
    const session = await oneTurn(host);
    const row = await host.journal.get(session);
    expect(await verify(service, session)).toMatchObject({ intact: true, records: 4n, headSeq: 4n, headHash: row?.projection.headHash });
    expect(await verify(service, await host.createSession())).toMatchObject({ intact: true, records: 0n, headSeq: 0n, headHash: "" });
  });

  /** A service whose store gives back other records than were committed. */
  async function spoiled(change: (records: readonly StoredRecord[]) => readonly StoredRecord[]) {
    const { host, service } = bench(speak, (inner) => ({
      async *read(request) {
        for await (const page of inner.read(request)) yield change(page);
      },
    }));
    return verify(service, await oneTurn(host));
  }

  it("says where a chain breaks and how", async () => {
    const byte = (record: StoredRecord): StoredRecord => {
      const bytes = record.bytes.slice();
      const at = bytes.findIndex((_, index) => Buffer.from(bytes.subarray(index, index + 5)).toString() === "heard");
      if (at >= 0) bytes[at] = 0x48;
      return { ...record, bytes };
    };
    expect(await spoiled((page) => page.map(byte))).toMatchObject({
      intact: false,
      records: 2n,
      fault: { kind: ChainFault_Kind.CONTENT_HASH, seq: 3n },
    });
    expect(await spoiled((page) => page.filter((record) => record.seq !== 2))).toMatchObject({
      records: 1n,
      fault: { kind: ChainFault_Kind.SEQ, seq: 2n },
    });
    expect(await spoiled((page) => page.slice(0, 3))).toMatchObject({ intact: false, records: 3n, fault: { kind: ChainFault_Kind.HEAD } });
    expect(await spoiled((page) => page.map((record) => ({ ...record, bytes: record.bytes.subarray(0, 9) })))).toMatchObject({
      records: 0n,
      fault: { kind: ChainFault_Kind.UNREADABLE, seq: 1n },
    });
  });

  it("says so when the row names another head than the chain has", async () => {
    const { host, service } = bench(speak, (inner) => ({
      async get(session) {
        const row = await inner.get(session);
        return row === undefined
          ? undefined
          : ({ ...row, projection: { ...row.projection, headHash: "0".repeat(64) } } satisfies SessionRow);
      },
    }));
    expect(await verify(service, await oneTurn(host))).toMatchObject({
      intact: false,
      records: 4n,
      fault: { kind: ChainFault_Kind.HEAD, seq: 4n },
    });
  });

  it("takes a store's word that its records are damaged as the answer, and other faults as errors", async () => {
    const failing = (code: "data_loss" | "unavailable") =>
      bench(speak, (inner) => ({
        async *read(request) {
          for await (const page of inner.read(request)) yield page.slice(0, 2);
          throw new HoldfastError(code, "journal: it cannot be read");
        },
      }));
    const damaged = failing("data_loss");
    const session = await oneTurn(damaged.host);
    expect(await verify(damaged.service, session)).toMatchObject({
      intact: false,
      records: 2n,
      fault: { kind: ChainFault_Kind.UNREADABLE, seq: 3n },
    });
    const away = failing("unavailable");
    await expect(verify(away.service, await oneTurn(away.host))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("is NOT_FOUND for an unknown session", async () => {
    const { service } = bench();
    await expect(verify(service, "nobody")).rejects.toMatchObject({ code: "not_found", field: "session" });
  });
});
