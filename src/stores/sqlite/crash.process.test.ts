/** I8 and I6 over `kill -9`: a process that appends is killed at random, twenty times, and what it acknowledged is there. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { JournalStore } from "../../journal/index.ts";
import { projectionOf, recordsOf, requireChain, uid } from "../../testing/journal-conformance/fixtures.ts";
import { SeededRandom, testDigest, VirtualClock } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { openSqliteStore } from "./index.ts";

const ROUNDS = 20;
const SESSIONS = 8;

const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);

/**
 * Appends to every session at once, for ever, and notes a line for each record in a file once it was acknowledged: what a
 * process has written to a file is there when it is killed. A dot on standard output tells that there is one more.
 */
const APPENDER = `
  import { openSync, writeSync } from "node:fs";
  import { openSqliteStore } from ${url("./index.ts")};
  import { nodeDigest, systemClock } from ${url("../../node/index.ts")};
  import { output, executionStart, end, seedOf, forkMarker, projectionOf, recordsOf } from ${url("../../testing/journal-conformance/fixtures.ts")};

  const [folder, writer, noted] = process.argv.slice(1);
  const notes = openSync(noted, "a");
  const store = await openSqliteStore({ folder, writer, clock: systemClock, digest: nodeDigest });
  const acknowledge = (session, records) => {
    for (const { seq, contentHash } of records) writeSync(notes, session + " " + seq + " " + contentHash + "\\n");
    process.stdout.write(".".repeat(records.length));
  };
  async function run(index) {
    let session = "s" + index;
    if ((await store.create(seedOf(session))).kind === "created") acknowledge(session, []);
    const claim = { kind: "claim", holder: "host-" + process.pid, leaseMs: 1000 };
    const claimed = await store.append({ session, writer: claim, events: [{ event: executionStart() }] });
    if (claimed.kind !== "appended") throw new Error(claimed.kind);
    acknowledge(session, claimed.records);
    const writer = { kind: "hold", fence: claimed.fence };
    let last = claimed.projection.lastSeq;
    for (let turn = 0; ; turn++) {
      const events = [output("x".repeat(100 * (turn % 9))), ...(turn % 7 === 0 ? [end(), executionStart()] : [])];
      const made = await store.append({ session, writer, expectedLastSeq: last, events: events.map((event) => ({ event })) });
      if (made.kind !== "appended") throw new Error(made.kind);
      acknowledge(session, made.records);
      last = made.projection.lastSeq;
      if (turn === 20) {
        const child = session + "/" + process.pid;
        const request = { parent: session, atSeq: 1, projection: projectionOf((await recordsOf(store, session)).slice(0, 1)) };
        await store.fork({ ...request, children: [{ seed: seedOf(child), marker: { event: forkMarker() } }] });
        acknowledge(child, (await recordsOf(store, child)).slice(0, 2));
      }
    }
  }
  await Promise.all(Array.from({ length: ${SESSIONS} }, (_, index) => run(index)));
`;

/** When a round's process is killed: some milliseconds after its start, or once it acknowledged some records. */
type Moment = { readonly afterMs: number } | { readonly afterRecords: number };

/** Runs the appender until it is killed. Returns the lines that it noted. */
async function runAndKill(folder: string, writer: string, moment: Moment): Promise<string[]> {
  const noted = join(folder, "acknowledged");
  rmSync(noted, { force: true });
  const child = spawn(process.execPath, ["--input-type=module", "-e", APPENDER, folder, writer, noted], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const errors: string[] = [];
  let records = 0;
  child.stderr.on("data", (data: Buffer) => errors.push(String(data)));
  const closed = once(child, "close");
  const timer = "afterMs" in moment ? setTimeout(() => child.kill("SIGKILL"), moment.afterMs) : undefined;
  child.stdout.on("data", (dots: Buffer) => {
    records += dots.length;
    if ("afterRecords" in moment && records >= moment.afterRecords) child.kill("SIGKILL");
  });
  await closed;
  clearTimeout(timer);
  expect({ signal: child.signalCode, errors: errors.join("") }).toEqual({ signal: "SIGKILL", errors: "" });
  return existsSync(noted)
    ? readFileSync(noted, "utf8")
        .split("\n")
        .filter((line) => line !== "")
    : [];
}

/** What was acknowledged: hashes by seq, by session. */
type Acknowledged = Map<string, Map<number, string>>;

function note(acknowledged: Acknowledged, line: string): void {
  const [session = "", seq, hash = ""] = line.split(" ");
  acknowledged.set(session, (acknowledged.get(session) ?? new Map<number, string>()).set(Number(seq), hash));
}

/** Checks that every acknowledged record is where it was acknowledged, that every chain is whole, and that the row says what it says. */
async function requireKept(store: JournalStore, acknowledged: Acknowledged): Promise<void> {
  for (const [session, hashes] of acknowledged) {
    const records = await recordsOf(store, session);
    requireChain(records);
    expect((await store.get(uid(session)))?.projection).toEqual(projectionOf(records));
    const lost = [...hashes].filter(([seq, hash]) => records[seq - 1]?.contentHash !== hash);
    expect({ session, lost }).toEqual({ session, lost: [] });
  }
}

describe.each(["inline", "worker"] as const)("a process that is killed while it appends, written %s", (writer) => {
  it(`leaves everything it acknowledged, ${ROUNDS} times`, async () => {
    using folder = new TemporaryFolder();
    const random = new SeededRandom(writer === "inline" ? 1 : 2);
    const acknowledged: Acknowledged = new Map();
    for (let round = 0; round < ROUNDS; round++) {
      const moment = round % 4 === 3 ? { afterMs: 50 + random.below(500) } : { afterRecords: 1 + random.below(800) };
      for (const line of await runAndKill(folder.path, writer, moment)) note(acknowledged, line);
      await using store = await openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });
      await requireKept(store, acknowledged);
    }
    const count = [...acknowledged.values()].reduce((sum, { size }) => sum + size, 0);
    expect(count).toBeGreaterThan(ROUNDS * 50);
  });
});

describe("the check of a crash", () => {
  it("notices a record that is missing and one that changed", async () => {
    using folder = new TemporaryFolder();
    const lines = await runAndKill(folder.path, "inline", { afterRecords: 50 });
    await using store = await openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });
    const [session = "", seq] = lines.at(-1)?.split(" ") ?? [];
    const wrongs = [`${session} 99999 hash`, `${session} ${seq} another`];
    for (const wrong of wrongs) {
      const acknowledged: Acknowledged = new Map();
      note(acknowledged, wrong);
      await expect(requireKept(store, acknowledged)).rejects.toThrow();
    }
  });
});
