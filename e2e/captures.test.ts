/**
 * What is stored of memory, on servers that are killed at any moment: each session goes on from its last completed turn (I4, I8), and once
 * what nobody needs is old, the next start removes it, and nothing else.
 */

import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { createClient, type Client, type SessionHandle } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { cryptoRandom, systemClock } from "../src/node/index.ts";
import { gvisorCaptureParts, whyNoGvisor } from "../src/runtimes/gvisor/index.ts";
import { quickJsCaptureParts } from "../src/runtimes/quickjs/index.ts";
import { snapshotBlob } from "../src/spi/index.ts";
import { createMemoryBlobStore, openFileBlobStore } from "../src/stores/blobs/index.ts";
import { bundleProgram, type BundledProgram } from "../src/testing/harness-programs/bundle.ts";
import { storyOf } from "../src/testing/index.ts";
import { Dice } from "../src/testing/dice.ts";
import { newDataFolder, serve } from "./support/server-process.ts";

const SCRIPT = fileURLToPath(new URL("support/sandboxed/counter.ts", import.meta.url));
const HOURS_MS = 3 * 60 * 60 * 1000;

const why = await whyNoGvisor({
  ports: { clock: systemClock, random: cryptoRandom },
  blobs: createMemoryBlobStore({ clock: systemClock }),
});
if (why !== undefined) process.stderr.write(`skipped: captures under gVisor, since ${why}\n`);

let bundle: BundledProgram | undefined;
afterAll(() => bundle?.[Symbol.dispose]());

const PLACES = [
  {
    name: "a sandboxed VM",
    isHere: true,
    kills: 4,
    withinMs: 2_500,
    turnsMin: 10,
    harness: async () => ({ runtime: "quickjs", script: SCRIPT }),
  },
  {
    name: "a gVisor sandbox",
    isHere: why === undefined,
    kills: 2,
    withinMs: 10_000,
    turnsMin: 3,
    harness: async () => {
      bundle ??= await bundleProgram("../../../e2e/support/harness-program.ts");
      return { runtime: "gvisor", command: [process.execPath, bundle.file, "counter"], cwd: bundle.folder };
    },
  },
];

/** A server on the folder, and a client of it. */
async function served(folder: string, harness: object) {
  const config = join(folder, "holdfast.json");
  writeFileSync(config, JSON.stringify({ harnesses: { counter: harness } }));
  const server = await serve(folder, { flags: ["--config", config] });
  const client = createClient({ transport: createNodeTransport({ address: server.url }) });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return { server, client };
}

async function turn(session: SessionHandle): Promise<void> {
  await Array.fromAsync(session.exec({ inputs: "go" }));
}

/** What the completed turns of a session counted. */
async function counts(session: SessionHandle): Promise<readonly number[]> {
  const counted: number[] = [];
  let said = 0;
  for await (const { record } of session.replay()) {
    const story = record.event === undefined ? "" : storyOf(record.event);
    if (story.startsWith("OUTPUT ")) said = Number(story.slice("OUTPUT ".length));
    if (story === "END COMPLETED") counted.push(said);
  }
  return counted;
}

/** The captures in a data folder, by their hex digits. */
function stored(folder: string): string[] {
  const entries = readdirSync(join(folder, "captures"), { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() && /^[0-9a-f]{64}$/.test(entry.name) ? [entry.name] : [])).toSorted();
}

const fileOf = (folder: string, hex: string): string => join(folder, "captures", hex.slice(0, 2), hex);

function makeOld(folder: string): void {
  for (const hex of stored(folder)) {
    const file = fileOf(folder, hex);
    const seconds = (statSync(file).mtimeMs - HOURS_MS) / 1000;
    utimesSync(file, seconds, seconds);
  }
}

/** What the sessions of a server would be brought back from, with all that it is made of. */
async function needed(client: Client, folder: string): Promise<string[]> {
  const hexes = new Set<string>();
  for await (const session of client.sessions.list()) {
    const name = snapshotBlob(session.compute?.snapshot?.externalUri ?? "");
    if (name === undefined) continue;
    const bytes = readFileSync(fileOf(folder, name.digest.slice("sha256:".length)));
    const parts = quickJsCaptureParts(bytes) ?? gvisorCaptureParts(bytes) ?? [];
    for (const { digest } of [name, ...parts]) hexes.add(digest.slice("sha256:".length));
  }
  return [...hexes].toSorted();
}

describe.each(PLACES.filter(({ isHere }) => isHere))("the counter in $name, on a server that is killed again and again", (place) => {
  it("goes on from its last completed turn, in every fork; and what nobody needs is removed", { timeout: 240_000 }, async () => {
    const folder = newDataFolder();
    const harness = await place.harness();
    const dice = new Dice(7);
    for (let kill = 0; kill < place.kills; kill++) {
      const { server, client } = await served(folder, harness);
      const act = async (): Promise<void> => {
        const uids: string[] = [];
        for await (const { metadata } of client.sessions.list()) uids.push(metadata?.uid ?? "");
        if (uids.length < 3) uids.push((await client.sessions.create({ harness: "counter" })).metadata?.uid ?? "");
        const session = client.session(dice.pick(uids)!);
        const step = dice.weighted([
          [6, "turn"],
          [2, "fork"],
          [1, "suspend"],
        ]);
        if (step === "turn") await turn(session);
        if (step === "fork" && uids.length < 6) await session.fork({ count: 1 });
        if (step === "suspend") await session.suspend();
      };
      let isOver = false;
      const actors = Array.from({ length: 3 }, async () => {
        while (!isOver) await act().catch(() => undefined);
      });
      await systemClock.sleep(dice.between(place.withinMs / 5, place.withinMs));
      await server.end("SIGKILL");
      isOver = true;
      await client[Symbol.asyncDispose]();
      await Promise.all(actors);
      makeOld(folder);
    }
    const last = await served(folder, harness);
    let turns = 0;
    for await (const { metadata } of last.client.sessions.list()) {
      const session = last.client.session(metadata?.uid ?? "");
      await turn(session);
      const counted = await counts(session);
      turns += counted.length;
      expect(counted).toEqual(counted.map((_, index) => index + 1));
    }
    expect(turns).toBeGreaterThanOrEqual(place.turnsMin);
    await last.server.end("SIGTERM");
    await openFileBlobStore({ folder: join(folder, "captures"), clock: systemClock }).put(Buffer.from("nobody's"));
    makeOld(folder);
    const after = await served(folder, harness);
    const kept = await needed(after.client, folder);
    expect(kept.length).toBeGreaterThan(1);
    await expect.poll(() => stored(folder), { timeout: 20_000 }).toEqual(kept);
    await after.server.end("SIGTERM");
  });
});
