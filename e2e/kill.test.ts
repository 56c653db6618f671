/**
 * `kill -9` of a real server in the middle of running turns, while clients watch. The promises (I6, I8):
 * - every record that any client saw on any stream is in the journal afterwards, byte for byte
 * - every chain verifies, and no turn has two ends
 * - the next turn of every session works
 *
 * HOLDFAST_KILLS=200 runs it as often as a release needs; the default keeps the tests quick.
 */

import { create, fromBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ClientReadableStream } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { decodeLogRecord } from "../src/canon/index.ts";
import { EventKind } from "../src/gen/agentsessions/v1/common_pb.ts";
import { Sessions, ExecUpdateSchema } from "../src/gen/agentsessions/v1/session_pb.ts";
import { Journal, TailRequest_Until } from "../src/gen/holdfast/v1/journal_pb.ts";
import { rawClientMethod, unwrapRecord } from "../src/grpc/index.ts";
import { textMessage } from "../src/spi/index.ts";
import { SeededRandom } from "../src/testing/index.ts";
import { ask, collect, stream } from "./support/grpc-door.ts";
import { newDataFolder, serve } from "./support/server-process.ts";

const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? "15");
const SESSIONS = 4;
/** From the first turns of a server to its end, at most. */
const KILL_AFTER_MS_MAX = 120;

/** What clients saw of one session. */
interface Seen {
  /** The bytes of each record, by seq. */
  readonly records: Map<bigint, Buffer>;
  /** Seqs of which two streams told different records. */
  readonly conflicts: bigint[];
}

function connect(address: string): Client {
  return new Client(address, credentials.createInsecure(), { "grpc.max_receive_message_length": -1 });
}

/** Keeps the record in an update that a client saw. */
function keep(seen: Seen, update: Uint8Array): void {
  const bytes = unwrapRecord(update);
  if (bytes === undefined) return;
  const { seq } = decodeLogRecord(bytes);
  const before = seen.records.get(seq);
  if (before === undefined) seen.records.set(seq, Buffer.from(bytes));
  else if (!before.equals(bytes)) seen.conflicts.push(seq);
}

/** Resolves when a stream is over, however it ends. */
function ended(call: ClientReadableStream<Uint8Array>): Promise<void> {
  return new Promise((resolve) => {
    call.on("error", () => resolve());
    call.on("end", () => resolve());
  });
}

/** Runs turn after turn of a session until the server is gone. */
async function runTurns(client: Client, session: string, seen: Seen, isOver: () => boolean): Promise<void> {
  const { path, requestSerialize, responseDeserialize } = rawClientMethod(Sessions.method.exec);
  while (!isOver()) {
    const request = create(Sessions.method.exec.input, { session, inputs: [textMessage("user", "hello over there")] });
    const call = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request, new Metadata());
    call.on("data", (update: Uint8Array) => keep(seen, update));
    await ended(call);
  }
}

/** Watches a session until the server is gone. */
async function follow(client: Client, session: string, seen: Seen): Promise<void> {
  const call = stream(client, Journal.method.tail, create(Journal.method.tail.input, { session, fromSeq: BigInt(seen.records.size + 1) }));
  call.on("data", (update: Uint8Array) => keep(seen, update));
  await ended(call);
}

/** Everything in the journal of a session, checked against what was seen. Returns how many records it has. */
async function checkJournal(client: Client, session: string, seen: Seen): Promise<number> {
  const verdict = await ask(client, Journal.method.verify, create(Journal.method.verify.input, { session }));
  expect(verdict).toMatchObject({ intact: true });
  const journal = await collect(stream(client, Sessions.method.replay, create(Sessions.method.replay.input, { session })));
  expect(BigInt(journal.length)).toBe(verdict.records);
  expect(seen.conflicts).toEqual([]);
  for (const [seq, bytes] of seen.records) expect(Buffer.compare(journal[Number(seq) - 1] ?? Buffer.alloc(0), bytes)).toBe(0);
  const ends = new Map<string, number>();
  for (const bytes of journal) {
    const { event } = decodeLogRecord(bytes);
    if (event?.kind === EventKind.EVENT_END) ends.set(event.executionId, (ends.get(event.executionId) ?? 0) + 1);
  }
  expect([...ends.values()].every((count) => count === 1)).toBe(true);
  return journal.length;
}

/** Runs one more turn to its end. */
async function checkNextTurn(client: Client, session: string): Promise<void> {
  const request = create(Sessions.method.exec.input, { session, inputs: [textMessage("user", "after the kill")] });
  const updates = await collect(stream(client, Sessions.method.exec, request));
  const last = fromBinary(ExecUpdateSchema, updates.at(-1) ?? new Uint8Array()).update;
  expect(last.case === "record" ? last.value.event?.body : undefined).toMatchObject({ case: "end", value: { state: "COMPLETED" } });
}

describe("kill -9", () => {
  it(
    `loses nothing that a client saw, ${KILLS} times at random moments of running turns`,
    { timeout: 60_000 + KILLS * 15_000 },
    async () => {
      const folder = newDataFolder();
      const random = new SeededRandom(20_261);
      const sessions = new Map<string, Seen>();
      let interrupted = 0;
      for (let kill = 0; kill < KILLS; kill++) {
        const server = await serve(folder, { flags: ["--log-level", "error"] });
        const client = connect(server.address);
        for (const [session, seen] of sessions) {
          await checkJournal(client, session, seen);
          await checkNextTurn(client, session);
        }
        while (sessions.size < SESSIONS) {
          const { metadata } = await ask(
            client,
            Sessions.method.createSession,
            create(Sessions.method.createSession.input, { session: {} }),
          );
          sessions.set(metadata?.uid ?? "", { records: new Map(), conflicts: [] });
        }
        let isOver = false;
        const clients = [...sessions].flatMap(([session, seen]) => [
          runTurns(client, session, seen, () => isOver),
          follow(client, session, seen),
        ]);
        await new Promise((resolve) => setTimeout(resolve, random.below(KILL_AFTER_MS_MAX)));
        isOver = true;
        const { exitCode } = await server.end("SIGKILL");
        expect(exitCode).toBeNull();
        await Promise.all(clients);
        client.close();
      }
      const server = await serve(folder, { flags: ["--log-level", "error"] });
      const client = connect(server.address);
      let seenCount = 0;
      for (const [session, seen] of sessions) {
        seenCount += seen.records.size;
        const tail = stream(
          client,
          Journal.method.tail,
          create(Journal.method.tail.input, { session, until: TailRequest_Until.HEAD, omitDeltas: true }),
        );
        expect((await collect(tail)).length - 1).toBe(await checkJournal(client, session, seen));
        interrupted += await openTurns(client, session);
        await checkNextTurn(client, session);
      }
      client.close();
      await server.end("SIGTERM");
      // The test has tested something: clients saw records, and kills did hit turns in the middle.
      expect(seenCount).toBeGreaterThan(KILLS * SESSIONS);
      expect(interrupted).toBeGreaterThan(0);
    },
  );
});

/** How many turns of a session have no END. */
async function openTurns(client: Client, session: string): Promise<number> {
  const journal = await collect(stream(client, Sessions.method.replay, create(Sessions.method.replay.input, { session })));
  const kinds = journal.map((bytes) => decodeLogRecord(bytes).event?.kind);
  return (
    kinds.filter((kind) => kind === EventKind.EVENT_EXECUTION_START).length - kinds.filter((kind) => kind === EventKind.EVENT_END).length
  );
}
