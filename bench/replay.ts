/**
 * Records a second of Sessions.Replay, from a real server in a process of its own to one client in this one. The server sends
 * stored bytes without decoding them; the rows differ in what the client does with what arrives.
 */

import { create } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { hostIdOf, type SessionUid } from "../src/base/index.ts";
import { createClient, type Client as HoldfastClient } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { ReplayRequestSchema, Sessions } from "../src/gen/agentsessions/v1/session_pb.ts";
import { rawClientMethod, type Encodable } from "../src/grpc/index.ts";
import { APPEND_EVENTS_MAX, type JournalStore } from "../src/journal/index.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { turnEvents } from "./events.ts";
import { startServerProcess } from "./server-process.ts";
import { Stopwatch, takeTurns, type Figure, type Rounds } from "./statistics.ts";
import { createSession, openStore } from "./stores.ts";

const RECORD_BYTES = 300;
const RECORDS = 100_000;
const TARGET: Target = { of: "value", bound: "at-least", limit: 50_000 };

/** A session with records in it. */
interface Journal {
  readonly session: SessionUid;
  readonly records: number;
  readonly bytes: number;
}

/** Measures the `replay` group. */
export async function measureReplay(context: BenchContext): Promise<Row[]> {
  const folder = context.newFolder();
  const journal = await filledJournal(folder, context.scale(RECORDS, RECORDS / 5));
  await using server = await startServerProcess(folder);
  await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
  const bare = new Client(new URL(server.url).host, credentials.createInsecure());
  try {
    const rounds = await takeTurns(context, "replay", context.scale(7, 2), {
      bare: () => timed(journal, () => bareReplay(bare, journal.session)),
      bytes: () => timed(journal, () => bytesReplay(client, journal.session)),
      decoded: () => timed(journal, () => decodedReplay(client, journal.session)),
    });
    const note = `${Math.round(journal.bytes / journal.records)} bytes a record`;
    return [
      { ...rowOf("replay, grpc-js client, bytes as they come", rounds.bare), target: TARGET, note },
      rowOf("replay, SDK, records as bytes", rounds.bytes),
      rowOf("replay, SDK, records decoded", rounds.decoded),
    ];
  } finally {
    bare.close();
    context.removeFolder(folder);
  }
}

function rowOf(name: string, { median: value, spread }: Rounds): Row {
  return { group: "replay", name, value, unit: "records/s", spread };
}

/** Writes a journal of turns into `folder` and closes it again. */
async function filledJournal(folder: string, records: number): Promise<Journal> {
  const store = await openStore(folder, "inline");
  try {
    const session = await createSession(store);
    return { session, records, bytes: await fill(store, session, records) };
  } finally {
    await store[Symbol.asyncDispose]();
  }
}

async function fill(store: JournalStore, session: SessionUid, records: number): Promise<number> {
  const eventAt = turnEvents(RECORD_BYTES);
  let bytes = 0;
  for (let from = 0; from < records; from += APPEND_EVENTS_MAX) {
    const count = Math.min(APPEND_EVENTS_MAX, records - from);
    const events = Array.from({ length: count }, (_, index) => ({ event: eventAt(from + index) }));
    const outcome = await store.append({ session, writer: { kind: "claim", holder: hostIdOf("bench"), leaseMs: 60_000 }, events });
    if (outcome.kind !== "appended") throw new Error(`the journal could not be filled: ${outcome.kind}`);
    for (const record of outcome.records) bytes += record.bytes.length;
  }
  return bytes;
}

/** What arrived. */
interface Arrived {
  records: number;
  bytes: number;
}

async function timed(journal: Journal, replay: () => Promise<Arrived>): Promise<Figure> {
  const watch = new Stopwatch();
  const arrived = await replay();
  const figure = watch.figure(journal.records);
  const isWhole = arrived.records === journal.records && (arrived.bytes === journal.bytes || arrived.bytes === 0);
  if (!isWhole) throw new Error(`${arrived.records} records of ${journal.records} arrived`);
  return figure;
}

/** The least that a client can do: count what comes. */
function bareReplay(client: Client, session: SessionUid): Promise<Arrived> {
  const { path, requestSerialize, responseDeserialize } = rawClientMethod(Sessions.method.replay);
  const request = create(ReplayRequestSchema, { session });
  const arrived: Arrived = { records: 0, bytes: 0 };
  return new Promise((resolve, reject) => {
    const call = client.makeServerStreamRequest<Encodable<typeof ReplayRequestSchema>, Uint8Array>(
      path,
      requestSerialize,
      responseDeserialize,
      request,
    );
    call.on("data", (record: Uint8Array) => {
      arrived.records += 1;
      arrived.bytes += record.length;
    });
    call.on("error", reject);
    call.on("end", () => resolve(arrived));
  });
}

async function bytesReplay(client: HoldfastClient, session: SessionUid): Promise<Arrived> {
  const arrived: Arrived = { records: 0, bytes: 0 };
  for await (const record of client.sessions.replayBytes(session)) {
    arrived.records += 1;
    arrived.bytes += record.length;
  }
  return arrived;
}

/** Decoded records have no size; that each has its event is what counts. */
async function decodedReplay(client: HoldfastClient, session: SessionUid): Promise<Arrived> {
  const arrived: Arrived = { records: 0, bytes: 0 };
  for await (const { record } of client.sessions.replay(session)) if (record.event !== undefined) arrived.records += 1;
  return arrived;
}
