/**
 * The simulator must be able to fail: with one fault planted between the hosts and their journal, it finds a broken promise within 200
 * seeds. The faults are planted here, by wrapping the store; nothing in the product knows of them.
 */

import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { HoldfastError, type Clock, type Fence, type Seq } from "../../base/index.ts";
import { decodeLogRecord, encodeLogRecord, normaliseEvent } from "../../canon/index.ts";
import { EventKind, EventSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { seal, type AppendOutcome, type AppendRequest, type JournalStore, type StoredRecord } from "../../journal/index.ts";
import { textMessage } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import type { Promised } from "../invariants.ts";
import { testDigest } from "../ports.ts";
import { simulate, SimulationFailure } from "./simulate.ts";

type Plant = (sound: JournalStore, clock: Clock) => Partial<JournalStore>;

function planted(plant: Plant): (sound: JournalStore, clock: Clock) => JournalStore {
  return (sound, clock) => ({
    name: "faulty",
    create: (seed, options) => sound.create(seed, options),
    get: (session, options) => sound.get(session, options),
    list: (request) => sound.list(request),
    append: (request, options) => sound.append(request, options),
    read: (request) => sound.read(request),
    readAsides: (request) => sound.readAsides(request),
    receipts: (session, query) => sound.receipts(session, query),
    reclaim: (session, options) => sound.reclaim(session, options),
    adopt: (request, options) => sound.adopt(request, options),
    complete: (sessions, options) => sound.complete(sessions, options),
    fork: (request, options) => sound.fork(request, options),
    renew: (request) => sound.renew(request),
    watch: (session, listener) => sound.watch(session, listener),
    ready: (options) => sound.ready(options),
    [Symbol.asyncDispose]: () => sound[Symbol.asyncDispose](),
    ...plant(sound, clock),
  });
}

/** What a store would answer if it had taken `request`; undefined where it would refuse it. */
async function pretended(
  sound: JournalStore,
  { session, writer, expectedLastSeq, events }: AppendRequest,
): Promise<AppendOutcome | undefined> {
  const row = await sound.get(session);
  if (row === undefined || writer.kind === "claim" || writer.fence !== row.fence) return undefined;
  if (expectedLastSeq !== undefined && expectedLastSeq !== row.projection.lastSeq) return undefined;
  const { records, projection } = seal(row.projection, row.fence, events, testDigest);
  return { kind: "appended", records, fence: row.fence, projection };
}

function isModelCall({ events }: AppendRequest): boolean {
  return events.some(({ event }) => event.kind === EventKind.EVENT_MODEL_CALL);
}

const skipsTheFenceCheck: Plant = (sound) => ({
  append: async (request, options) => {
    const { writer } = request;
    const row = await sound.get(request.session);
    if (writer.kind === "claim" || row === undefined) return sound.append(request, options);
    return sound.append({ ...request, writer: { ...writer, fence: row.fence } }, options);
  },
});

/** MODEL_CALL is kept back until the session's next append, which is its completion's. */
const commitsTheIntentAfterTheEffect: Plant = (sound) => {
  const kept = new Map<string, AppendRequest>();
  return {
    append: async (request, options) => {
      const earlier = kept.get(request.session);
      if (earlier !== undefined) {
        kept.delete(request.session);
        await sound.append(earlier);
      }
      const answer = isModelCall(request) ? await pretended(sound, request) : undefined;
      if (answer === undefined) return sound.append(request, options);
      kept.set(request.session, request);
      return answer;
    },
  };
};

/** Every second append of a turn is answered at once and written a little later. */
const acknowledgesBeforeItIsDurable: Plant = (sound, clock) => {
  let appends = 0;
  return {
    append: async (request, options) => {
      const answer = appends++ % 2 === 0 ? await pretended(sound, request) : undefined;
      if (answer === undefined) return sound.append(request, options);
      clock.after(3, () => void sound.append(request, options));
      return answer;
    },
  };
};

const dropsAnAppend: Plant = (sound) => {
  let appends = 0;
  return {
    append: async (request, options) => {
      const answer = appends++ % 20 === 19 ? await pretended(sound, request) : undefined;
      return answer ?? sound.append(request, options);
    },
  };
};

/** Outputs are read back with another text; everything else is as it was recorded. */
const servesAnotherCompletion: Plant = (sound) => {
  const altered = (record: StoredRecord): StoredRecord => {
    const { event, seq, prevHash, contentHash, fence } = decodeLogRecord(record.bytes);
    if (event === undefined || event.kind !== EventKind.EVENT_OUTPUT) return record;
    const other = create(EventSchema, { ...event, body: { case: "message", value: textMessage("assistant", "something else") } });
    const bytes = encodeLogRecord({
      seq: Number(seq) as Seq,
      prevHash,
      contentHash,
      fence: Number(fence) as Fence,
      event: normaliseEvent(other),
    });
    return { ...record, bytes };
  };
  return {
    async *read(request) {
      for await (const page of sound.read(request)) yield page.map(altered);
    },
  };
};

/** TOOL_CALL is kept back until the session's next append, which is its result's. */
const commitsTheToolCallAfterTheEffect: Plant = (sound) => {
  const kept = new Map<string, AppendRequest>();
  return {
    append: async (request, options) => {
      const earlier = kept.get(request.session);
      if (earlier !== undefined) {
        kept.delete(request.session);
        await sound.append(earlier);
      }
      const isCall = request.events.some(({ event }) => event.kind === EventKind.EVENT_TOOL_CALL);
      const answer = isCall ? await pretended(sound, request) : undefined;
      if (answer === undefined) return sound.append(request, options);
      kept.set(request.session, request);
      return answer;
    },
  };
};

/** Whatever has begun is said not to have. */
const saysThatNothingHasBegun: Plant = (sound) => ({
  receipts: async (session, query) => {
    const receipts = await sound.receipts(session, query);
    return receipts.map((receipt) => (receipt.state === "started" ? { ...receipt, state: "intended" as const } : receipt));
  },
});

const forgetsReceipts: Plant = () => ({ receipts: async () => [] });

/** Every denial is read back as an approval. */
const readsDenialsAsApprovals: Plant = (sound) => {
  const altered = (record: StoredRecord): StoredRecord => {
    const { event, seq, prevHash, contentHash, fence } = decodeLogRecord(record.bytes);
    if (event?.body.case !== "approvalResult") return record;
    event.body.value.approved = true;
    const bytes = encodeLogRecord({
      seq: Number(seq) as Seq,
      prevHash,
      contentHash,
      fence: Number(fence) as Fence,
      event: normaliseEvent(event),
    });
    return { ...record, bytes };
  };
  return {
    async *read(request) {
      for await (const page of sound.read(request)) yield page.map(altered);
    },
  };
};

const releasesTheLeaseEarly: Plant = (sound) => ({
  append: (request, options) => {
    const { writer } = request;
    return sound.append({ ...request, writer: writer.kind === "hold" ? { ...writer, kind: "release" } : writer }, options);
  },
});

const neverRefusesALiveLease: Plant = (sound) => ({
  append: (request, options) => {
    const { writer } = request;
    return sound.append({ ...request, writer: writer.kind === "claim" ? { ...writer, takeOver: true } : writer }, options);
  },
});

const doesNotLookAtTheHead: Plant = (sound) => ({
  append: (request, options) => sound.append({ ...request, expectedLastSeq: undefined }, options),
});

/** The second half of an append is lost when its answer is not waited for any more. */
const tearsAnAppend: Plant = (sound) => {
  let appends = 0;
  return {
    append: async (request, options) => {
      if (appends++ % 15 !== 14 || request.events.length < 2) return sound.append(request, options);
      await sound.append({ ...request, events: request.events.slice(0, 1) }, options);
      throw new HoldfastError("unavailable", "torn");
    },
  };
};

const watchersMissARecord: Plant = (sound) => ({
  watch: (session, listener) => {
    let commits = 0;
    return sound.watch(session, (records) => {
      const told = commits++ % 6 === 5 ? records.map((record) => ({ ...record, contentHash: "0".repeat(64) })) : records;
      listener(told);
    });
  },
});

/** What is planted, and the promise that must be seen to break. */
const FAULTS: Readonly<Record<string, { readonly plant: Plant; readonly breaks: Promised }>> = {
  "the fence check is skipped": { plant: skipsTheFenceCheck, breaks: "I6" },
  "MODEL_CALL is committed after the effect": { plant: commitsTheIntentAfterTheEffect, breaks: "I7" },
  "an append is acknowledged before it is durable": { plant: acknowledgesBeforeItIsDurable, breaks: "I8" },
  "an append is dropped": { plant: dropsAnAppend, breaks: "I8" },
  "recovery is served a wrong completion": { plant: servesAnotherCompletion, breaks: "I3" },
  "recovery is served a wrong completion, and asks for something else then": { plant: servesAnotherCompletion, breaks: "I0" },
  "the lease is released early": { plant: releasesTheLeaseEarly, breaks: "I6" },
  "a live lease is no reason to refuse": { plant: neverRefusesALiveLease, breaks: "I6" },
  "the expected head is not looked at": { plant: doesNotLookAtTheHead, breaks: "I6" },
  "half of an append is written": { plant: tearsAnAppend, breaks: "turn" },
  "TOOL_CALL is committed after the effect": { plant: commitsTheToolCallAfterTheEffect, breaks: "I7" },
  "a tool that has begun is said not to have": { plant: saysThatNothingHasBegun, breaks: "I3" },
  "receipts are forgotten": { plant: forgetsReceipts, breaks: "I3" },
  "a denial is read back as an approval": { plant: readsDenialsAsApprovals, breaks: "I7" },
  "watchers are told a wrong record": { plant: watchersMissARecord, breaks: "I8" },
};

const SEEDS_MAX = 200;

async function failureOf(seed: number, plant: Plant): Promise<SimulationFailure | undefined> {
  try {
    await simulate({ seed, openJournal: async (clock) => createMemoryStore({ clock, digest: testDigest }), plant: planted(plant) });
    return undefined;
  } catch (error) {
    if (error instanceof SimulationFailure) return error;
    throw error;
  }
}

/** The first seed whose run breaks the promise. */
async function foundBy(plant: Plant, breaks: Promised): Promise<SimulationFailure | undefined> {
  for (let seed = 1; seed <= SEEDS_MAX; seed++) {
    const failure = await failureOf(seed, plant);
    if (failure?.violations.some(({ promised }) => promised === breaks) === true) return failure;
  }
  return undefined;
}

describe("a planted fault is found within 200 seeds", () => {
  it.each(Object.entries(FAULTS))("%s", async (_, { plant, breaks }) => {
    const failure = await foundBy(plant, breaks);
    expect(failure?.seed).toBeLessThanOrEqual(SEEDS_MAX);
    expect(failure?.message).toContain(`again: npm run simulate -- --seed ${failure?.seed}`);
  });
});
