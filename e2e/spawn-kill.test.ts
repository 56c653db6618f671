/**
 * `kill -9` of a real server between the records of an agent and of the two sub-agents that it spawned, some records further each time. After
 * each, another server resumes the agent, and only the agent (I3):
 * - each call has one worker, whose prompt was run once, in one turn; the agent has its answer and ends
 * - all three journals verify, and what anybody saw of them is in them (I8)
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { HoldfastError, type SessionUid } from "../src/base/index.ts";
import { createClient, type Client } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { nodeDigest } from "../src/node/index.ts";
import { SPAWNED_BY_ANNOTATION, spawnCallOf, workerUid } from "../src/service/index.ts";
import { storyOf } from "../src/testing/index.ts";
import { newDataFolder, serve, type ServerProcess } from "./support/server-process.ts";

/** Every answer takes its time, so that a kill comes between two records. */
const SCRIPT = `completions:
  - on: { user: "ask two scouts", step: 1 }
    delayMs: 20
    calls:
      - { tool: spawn, id: birds, args: { agent: scout, prompt: "count the birds" } }
      - { tool: spawn, id: bees, args: { agent: scout, prompt: "count the bees" } }
  - on: { user: "ask two scouts", step: 2 }
    delayMs: 20
    text: "seven birds and a thousand bees"
  - on: { user: "count the birds" }
    delayMs: 25
    text: "seven birds"
  - on: { user: "count the bees" }
    delayMs: 45
    text: "a thousand bees"
`;
const CONFIG = { agents: { lead: { tools: { free: ["spawn"] } }, scout: {} }, spawn: { agents: ["scout"] }, registry: { listen: "off" } };

/** The agent's records, and those of its two workers. */
const RECORDS = 12 + 2 * 6;
/** The kills come so many records apart; HOLDFAST_SPAWN_KILL_STEP=1 kills at each of them. */
const STEP = Number(process.env["HOLDFAST_SPAWN_KILL_STEP"] ?? "6");

/** Servers on one data folder, one after the other. */
class Servers {
  readonly #folder = newDataFolder();

  constructor() {
    writeFileSync(join(this.#folder, "script.yaml"), SCRIPT);
    writeFileSync(join(this.#folder, "holdfast.json"), JSON.stringify(CONFIG));
  }

  async next(): Promise<{ readonly server: ServerProcess; readonly client: Client }> {
    const files = ["--config", join(this.#folder, "holdfast.json"), "--model", `script:${join(this.#folder, "script.yaml")}`];
    const server = await serve(join(this.#folder, "data"), { flags: [...files, "--log-level", "error"] });
    return { server, client: createClient({ transport: createNodeTransport({ address: server.url }) }) };
  }
}

/** The content hashes that were seen of sessions: by uid, then by seq. */
type Seen = Map<string, Map<bigint, string>>;

/** Watches a session, and the workers that it spawns, until the server is gone or the turns are over. */
async function follow(client: Client, session: string, seen: Seen, onRecord: () => void): Promise<void> {
  const hashes = new Map<bigint, string>();
  seen.set(session, hashes);
  const workers: Promise<void>[] = [];
  try {
    for await (const item of client.journal.tail(session, { reconnect: false, deltas: false })) {
      if (item.kind !== "record") continue;
      const { seq, contentHash, event } = item.record;
      hashes.set(seq, contentHash);
      onRecord();
      const call = event === undefined ? undefined : spawnCallOf(event);
      if (call !== undefined) workers.push(followSoon(client, workerOf(session, call.idempotencyKey), seen, onRecord));
      if (event?.body.case === "end") break;
    }
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "unavailable") throw error;
  }
  await Promise.all(workers);
}

/** Follows a worker once its session is there. */
async function followSoon(client: Client, worker: string, seen: Seen, onRecord: () => void): Promise<void> {
  for (;;) {
    try {
      await client.sessions.get(worker);
      return await follow(client, worker, seen, onRecord);
    } catch (error) {
      const code = error instanceof HoldfastError ? error.code : "";
      if (code === "unavailable" || code === "cancelled") return;
      if (code !== "not_found") throw error;
    }
  }
}

function workerOf(session: string, key: string): string {
  return workerUid(session as SessionUid, key, nodeDigest);
}

async function storyIn(client: Client, session: string): Promise<string[]> {
  const records = await Array.fromAsync(client.sessions.replay(session));
  return records.map(({ record }) => storyOf(record.event!));
}

/** Resumes the agent and holds everything to what is promised. */
async function check(client: Client, lead: string, seen: Seen): Promise<void> {
  await client.sessions.resume(lead);
  const story = await storyIn(client, lead);
  expect(story.slice(-2)).toEqual(["USAGE", "END COMPLETED"]);
  expect(story).toContain("OUTPUT seven birds and a thousand bees");
  expect(story.filter((line) => line.startsWith("TOOL_RESULT")).toSorted()).toEqual(["TOOL_RESULT bees", "TOOL_RESULT birds"]);
  const sessions = await Array.fromAsync(client.sessions.list({ pageSize: 500 }));
  const workers = sessions.filter(({ annotations }) => annotations[SPAWNED_BY_ANNOTATION] === lead);
  const stories = await Promise.all(workers.map(({ metadata }) => storyIn(client, metadata?.uid ?? "")));
  const worker = (asked: string, said: string) => [
    "EXECUTION_START",
    `INPUT ${asked}`,
    "MODEL_CALL",
    `OUTPUT ${said}`,
    "USAGE",
    "END COMPLETED",
  ];
  expect(stories.toSorted((one, other) => (one[1]! < other[1]! ? -1 : 1))).toEqual([
    worker("count the bees", "a thousand bees"),
    worker("count the birds", "seven birds"),
  ]);
  for (const uid of [lead, ...workers.map(({ metadata }) => metadata?.uid ?? "")]) {
    expect(await client.journal.verify(uid)).toMatchObject({ intact: true });
    const records = await Array.fromAsync(client.sessions.replay(uid));
    const lost = [...(seen.get(uid) ?? [])].filter(([seq, hash]) => records[Number(seq) - 1]?.record.contentHash !== hash);
    expect(lost).toEqual([]);
  }
}

describe("kill -9 of a server whose agent has spawned", () => {
  it("leaves one worker for each call, wherever it comes", { timeout: 60_000 + RECORDS * 20_000 }, async () => {
    const servers = new Servers();
    let before: { readonly lead: string; readonly seen: Seen } | undefined;
    let cut = 0;
    for (let kill = STEP; kill <= RECORDS; kill += STEP) {
      const { server, client } = await servers.next();
      if (before !== undefined) await check(client, before.lead, before.seen);
      const { metadata } = await client.sessions.create({ harness: "lead" });
      const lead = metadata?.uid ?? "";
      const seen: Seen = new Map();
      let records = 0;
      const onRecord = (): void => {
        records += 1;
        if (records === kill) void server.end("SIGKILL");
      };
      const following = follow(client, lead, seen, onRecord);
      const turn = client.session(lead).exec({ inputs: "ask two scouts" }, { reconnect: false });
      const isWhole = await turn.finish().then(
        () => true,
        () => false,
      );
      if (!isWhole) cut += 1;
      await following;
      await server.end("SIGKILL");
      await client[Symbol.asyncDispose]();
      before = { lead, seen };
    }
    const { server, client } = await servers.next();
    await check(client, before!.lead, before!.seen);
    await client[Symbol.asyncDispose]();
    await server.end("SIGTERM");
    // The test has tested something: nearly every kill came while the turn ran.
    expect(cut).toBeGreaterThan(RECORDS / STEP / 3);
  });
});
