/**
 * Appends a second at 1, 8, 64 and 512 sessions that append at the same time, each one event of its turn after the other, against
 * bare inserts of the very same rows into the same kind of file: encoded beforehand, through the store's own connection settings,
 * schema and statement, in transactions of as many rows as there are sessions. Bare inserts hash nothing, check nothing and
 * keep no session rows.
 */

import { join } from "node:path";
import { fenceOf, hostIdOf, seqOf, type SessionUid } from "../src/base/index.ts";
import { EMPTY_PROJECTION, seal, type JournalStore, type NewEvent, type StoredRecord } from "../src/journal/index.ts";
import { openWriter } from "../src/stores/sqlite/connection.ts";
import { shortened } from "../src/stores/sqlite/record-bytes.ts";
import { STATEMENTS } from "../src/stores/sqlite/statements.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { outputEvents, turnStart } from "./events.ts";
import { pairedRatio, Stopwatch, takeTurns, type Figure, type Rounds } from "./statistics.ts";
import { createSessions, PORTS, withStore, type WriterMode } from "./stores.ts";

const RECORD_BYTES = 650;
/** How many sessions append at once, and how many events they append together in one round. */
const LOADS = [
  { sessions: 1, events: 4_000 },
  { sessions: 8, events: 24_000 },
  { sessions: 64, events: 64_000 },
  { sessions: 512, events: 81_920 },
] as const;
const TARGET_SESSIONS = 64;
const TARGET: Target = { of: "ratio", bound: "at-least", limit: 0.55 };
const FENCE = fenceOf(1);
/** What opens every session's turn, before the clock runs. */
const START: NewEvent = { event: turnStart() };
/** The version of a session after its start: it was created, then claimed. */
const STARTED_VERSION = 2;

/** What one session appends after its start: the events, and the records that they become. */
interface Script {
  readonly events: readonly NewEvent[];
  readonly records: readonly StoredRecord[];
}

/** Measures the `append` group. */
export async function measureAppend(context: BenchContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const load of LOADS) rows.push(...(await measureLoad(context, load.sessions, context.scale(load.events, load.events / 8))));
  return rows;
}

async function measureLoad(context: BenchContext, sessions: number, events: number): Promise<Row[]> {
  const scripts = scriptsOf(sessions, events / sessions);
  for (const writer of ["inline", "worker"] as const) await requireSameBytes(context, writer, scripts);
  const label = `append, ${sessions} session${sessions === 1 ? "" : "s"}`;
  const rounds = await takeTurns(context, label, context.scale(7, 2), {
    bare: () => bareInserts(context, scripts),
    inline: () => appends(context, "inline", scripts),
    worker: () => appends(context, "worker", scripts),
  });
  const { bare, inline, worker } = rounds;
  const target = sessions === TARGET_SESSIONS ? TARGET : undefined;
  return [
    rowOf(`${label}, bare inserts`, bare),
    { ...rowOf(`${label}, writer inline`, inline), ratio: pairedRatio(inline, bare), target },
    { ...rowOf(`${label}, writer in a thread`, worker), ratio: pairedRatio(worker, bare), target },
  ];
}

function rowOf(name: string, { median: value, spread, cpuUs }: Rounds): Row {
  return { group: "append", name, value, unit: "events/s", spread, cpuUs };
}

/** Every session's events, and its records sealed as a store would seal them under its first fence. */
function scriptsOf(sessions: number, eventsEach: number): Script[] {
  const eventAt = outputEvents(RECORD_BYTES);
  return Array.from({ length: sessions }, (_, session) => {
    const events: NewEvent[] = [];
    for (let index = 0; index < eventsEach; index++) events.push({ event: eventAt(session * eventsEach + index) });
    const records: StoredRecord[] = [];
    let { projection } = seal(EMPTY_PROJECTION, FENCE, [START], PORTS.digest);
    for (const event of events) {
      const sealed = seal(projection, FENCE, [event], PORTS.digest);
      projection = sealed.projection;
      records.push(...sealed.records);
    }
    return { events, records };
  });
}

async function appends(context: BenchContext, writer: WriterMode, scripts: readonly Script[]): Promise<Figure> {
  return withStore(context, writer, async (store) => {
    const uids = await claimedSessions(store, scripts.length);
    const watch = new Stopwatch();
    await Promise.all(scripts.map((script, index) => appendAll(store, uids[index]!, script)));
    return watch.figure(countOf(scripts));
  });
}

/** Sessions in a turn whose writer has the fence 1. */
async function claimedSessions(store: JournalStore, count: number): Promise<SessionUid[]> {
  const uids = await createSessions(store, count);
  const writer = { kind: "claim", holder: hostIdOf("bench"), leaseMs: 600_000 } as const;
  await Promise.all(uids.map((session) => store.append({ session, writer, events: [START] })));
  return uids;
}

async function appendAll(store: JournalStore, session: SessionUid, { events }: Script): Promise<void> {
  let expectedLastSeq = seqOf(1);
  for (const event of events) {
    const outcome = await store.append({ session, expectedLastSeq, writer: { kind: "hold", fence: FENCE }, events: [event] });
    if (outcome.kind !== "appended") throw new Error(`an append was refused: ${outcome.kind}`);
    expectedLastSeq = outcome.projection.lastSeq;
  }
}

/** One transaction for each event of a session, with that event of every session in it. */
function bareInserts(context: BenchContext, scripts: readonly Script[]): Figure {
  const folder = context.newFolder();
  const db = openWriter({ path: join(folder, "bare.sqlite"), fileBytesMax: undefined });
  try {
    const kept = scripts.map(({ records }) => records.map(({ bytes, contentHash }) => shortened(bytes, contentHash)));
    const [begin, insert, commit] = ["BEGIN IMMEDIATE", STATEMENTS.insertRecord, "COMMIT"].map((sql) => db.prepare(sql));
    const batches = scripts[0]!.records.length;
    const nowMs = PORTS.clock.nowMs();
    const watch = new Stopwatch();
    for (let batch = 0; batch < batches; batch++) {
      begin!.run();
      for (let session = 0; session < scripts.length; session++) {
        const { seq, kind, fence, contentHash } = scripts[session]!.records[batch]!;
        insert!.run(session + 1, seq, kind, fence, STARTED_VERSION + batch + 1, nowMs, contentHash, kept[session]![batch]!);
      }
      commit!.run();
    }
    return watch.figure(countOf(scripts));
  } finally {
    db.close();
    context.removeFolder(folder);
  }
}

/** The comparison is fair only if the store writes what the bare inserts write, byte for byte. */
async function requireSameBytes(context: BenchContext, writer: WriterMode, scripts: readonly Script[]): Promise<void> {
  await withStore(context, writer, async (store) => {
    const uids = await claimedSessions(store, scripts.length);
    await Promise.all(scripts.map((script, index) => appendAll(store, uids[index]!, script)));
    for (const [index, { records }] of scripts.entries()) {
      let at = 0;
      for await (const page of store.read({ session: uids[index]!, fromSeq: seqOf(2) })) {
        for (const { bytes } of page) if (Buffer.compare(bytes, records[at++]!.bytes) !== 0) throw new Error("a record differs");
      }
      if (at !== records.length) throw new Error(`the journal holds ${at} records of ${records.length}`);
    }
  });
}

function countOf(scripts: readonly Script[]): number {
  return scripts.reduce((count, { events }) => count + events.length, 0);
}
