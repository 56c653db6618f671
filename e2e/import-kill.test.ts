/**
 * `kill -9` of a real server in the middle of an import, over the wire. The promises:
 * - nothing of the import can be used before all of it was verified: no session of it is listed, takes a turn or can be forked
 * - what is there of it is a chain that verifies, and everything else on the server is as it was
 * - repeated, the import comes to its end, and what is exported then is byte for byte what was imported
 */

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../src/base/index.ts";
import { createClient, type Client } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import type { JournalStore } from "../src/journal/index.ts";
import { createMemoryStore } from "../src/stores/memory/index.ts";
import { exportedFile } from "../src/testing/archive-files.ts";
import { append, created, forked, forkRequest, output, uid } from "../src/testing/journal-conformance/fixtures.ts";
import { SeededRandom, testDigest, VirtualClock } from "../src/testing/ports.ts";
import { newDataFolder, serve, type ServerProcess } from "./support/server-process.ts";

const ROUNDS = 2;
const KILLS_PER_ROUND = 3;
const PIECE_BYTES = 32 * 1024;
/** How long a kill may come after the piece that it waits for. */
const KILL_AFTER_MS_MAX = 30;

/** The sessions: who each is a fork of, at which record, and how many records it wrote itself. */
const FAMILY = [
  { name: "root", parent: "", at: 0, records: 16_000 },
  { name: "early", parent: "root", at: 500, records: 5_000 },
  { name: "grandchild", parent: "early", at: 4_000, records: 4_000 },
  { name: "late", parent: "root", at: 15_999, records: 5_000 },
] as const;
const RECORDS = FAMILY.reduce((sum, { records }) => sum + records, 0);

async function grow(journal: JournalStore, session: string, records: number): Promise<void> {
  for (let at = 0; at < records; at += 1_000) {
    const count = Math.min(1_000, records - at);
    await append(journal, session, ...Array.from({ length: count }, (_, index) => output(`${session} ${at + index} ${"x".repeat(200)}`)));
  }
}

/** An export of the family. */
async function familyFile(): Promise<Buffer> {
  const journal = createMemoryStore({ clock: new VirtualClock(), digest: testDigest });
  for (const { name, parent, at, records } of FAMILY) {
    if (parent === "") await created(journal, name, { name: "of its own", labels: { key: "value" } });
    else forked(await journal.fork(await forkRequest(journal, parent, at, name)));
    // A fork's first record is the mark of its beginning.
    await grow(journal, name, parent === "" ? records : records - 1);
  }
  return exportedFile(journal, uid("root"), { family: true, form: "binary" });
}

async function* piecesOf(file: Buffer, onPiece: (index: number) => void): AsyncGenerator<Uint8Array, void, undefined> {
  for (let index = 0; index * PIECE_BYTES < file.length; index++) {
    onPiece(index);
    yield file.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES);
  }
}

/** Runs a body with a server over a folder and a client of it. The server is killed afterwards where the body has not done so. */
async function withServer<T>(folder: string, body: (client: Client, server: ServerProcess) => Promise<T>): Promise<T> {
  const server = await serve(folder, { flags: ["--log-level", "error"] });
  await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
  const result = await body(client, server);
  await server.end("SIGKILL");
  return result;
}

/** Begins an import and kills the server when a piece of it is asked for, or a moment later. */
async function killedImport(client: Client, server: ServerProcess, file: Buffer, atPiece: number, afterMs: number): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const importing = client.journal.import(piecesOf(file, (index) => (index === atPiece ? reached.resolve() : undefined)));
  const settled = importing.then(
    () => "imported",
    (error: unknown) => (error instanceof HoldfastError ? error.code : expect.fail(String(error))),
  );
  await reached.promise;
  await sleep(afterMs);
  await server.end("SIGKILL");
  // A server that is gone is unavailable; an import that was faster is done.
  expect(["unavailable", "imported"]).toContain(await settled);
}

type Left = "nothing" | "half" | "whole";

/** What a server has of the family after a kill, and that none of a half can be used. */
async function whatIsLeft(client: Client): Promise<Left> {
  const listed = new Set((await Array.fromAsync(client.sessions.list({}))).map(({ metadata }) => metadata?.uid));
  const mine = FAMILY.filter(({ name }) => listed.has(name));
  expect([0, FAMILY.length]).toContain(mine.length);
  if (mine.length > 0) return "whole";
  let found = 0;
  for (const { name } of FAMILY) {
    const isThere = await client.sessions.get(name).then(
      () => true,
      (error: unknown) => codeOf(error) !== "not_found",
    );
    for (const use of [
      () => client.sessions.exec({ session: name, inputs: "hello" }).finish(),
      () => client.sessions.fork(name, { atSeq: 1 }),
    ])
      expect(["not_found", "failed_precondition"]).toContain(await use().then(() => "used", codeOf));
    if (!isThere) continue;
    found += 1;
    expect(await client.journal.verify(name)).toMatchObject({ intact: true });
  }
  return found === 0 ? "nothing" : "half";
}

function codeOf(error: unknown): string {
  return error instanceof HoldfastError ? error.code : expect.fail(String(error));
}

async function exported(client: Client): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(client.journal.export("late", { family: true })));
}

describe("kill -9 in the middle of an import", () => {
  it(`leaves nothing that can be used, and the import can be repeated (${RECORDS} records)`, { timeout: 120_000 }, async () => {
    const file = await familyFile();
    const random = new SeededRandom(20_263);
    const pieces = Math.ceil(file.length / PIECE_BYTES);
    const seen: Left[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const folder = newDataFolder();
      const bystander = await withServer(folder, async (client) => {
        const turn = client.sessions.exec({ inputs: "hello" });
        await turn.finish();
        return turn.sessionUid ?? "";
      });
      for (let kill = 0; kill < KILLS_PER_ROUND; kill++) {
        await withServer(folder, async (client, server) => {
          if (kill > 0) seen.push(await whatIsLeft(client));
          // The last one of a round comes about when everything was sent.
          const atPiece = kill === KILLS_PER_ROUND - 1 ? pieces - 1 : 2 + random.below(pieces - 2);
          await killedImport(client, server, file, atPiece, random.below(KILL_AFTER_MS_MAX));
        });
      }
      await withServer(folder, async (client) => {
        seen.push(await whatIsLeft(client));
        const { sessions } = await client.journal.import(piecesOf(file, () => undefined));
        expect(sessions.map(({ uid: session }) => session).toSorted()).toEqual(FAMILY.map(({ name }) => name).toSorted());
        expect((await exported(client)).equals(file)).toBe(true);
        for (const { name } of FAMILY) expect(await client.journal.verify(name)).toMatchObject({ intact: true });
        for (const session of [bystander, "grandchild"]) {
          const turn = client.sessions.exec({ session, inputs: "after the kill" });
          expect(await turn.finish()).toMatchObject({ kind: "ended", state: "COMPLETED" });
          expect(await client.journal.verify(session)).toMatchObject({ intact: true });
        }
      });
    }
    expect(seen.length).toBe(ROUNDS * KILLS_PER_ROUND);
    // The test has tested something: kills did hit imports in the middle.
    expect(seen.filter((left) => left === "half").length).toBeGreaterThan(ROUNDS);
  });
});
