import { describe, expect, it } from "vitest";
import type { Clock } from "../../base/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { openSqliteStore } from "../../stores/sqlite/index.ts";
import { testDigest } from "../ports.ts";
import { TemporaryFolder } from "../temporary-folder.ts";
import { simulate, type SimulationReport } from "./simulate.ts";

/** As many as take well under a minute; `npm run simulate` has no limit. */
const SEEDS = 400;
const SQLITE_SEEDS = 20;

const inMemory = (seed: number): Promise<SimulationReport> =>
  simulate({ seed, openJournal: async (clock) => createMemoryStore({ clock, digest: testDigest }) });

async function inFile(seed: number): Promise<SimulationReport> {
  using folder = new TemporaryFolder();
  const openJournal = (clock: Clock) => openSqliteStore({ folder: folder.path, clock, digest: testDigest });
  return await simulate({ seed, openJournal, survives: true, replayCommand: (of) => `npm run simulate -- --sqlite --seed ${of}` });
}

/** What must have happened somewhere in a run of many seeds, so that their silence means something. */
const WHAT_HAPPENS = [
  "death",
  "power cut",
  "pause",
  "shutdown",
  "recovery",
  "replayed session",
  "turn COMPLETED",
  "turn FAILED",
  "turn CANCELED",
  "turn interrupted",
  "exec aborted",
  "exec deadline_exceeded",
  "exec failed_precondition",
  "exec invalid_argument",
  "exec not_found",
  "exec resource_exhausted",
  "exec unavailable",
  "resume aborted",
  "resume failed_precondition",
  "suspend ok",
  "approve ok",
  "approve aborted",
  "approve failed_precondition",
  "approve not_found",
  "exec continues",
  "turn parked",
  "decided in peace",
  "suspend aborted",
  "delete ok",
  "reclaimed",
  "kept for children",
  "fork ok",
  "fork already_exists",
  "fork failed_precondition",
  "list ok",
  "watch ok",
  "watch unavailable",
];

describe("the simulator", () => {
  it(`keeps every promise in ${SEEDS} worlds, in which everything happens that can`, { timeout: 120_000 }, async () => {
    const counts = new Map<string, number>();
    for (let seed = 1; seed <= SEEDS; seed++) {
      const report = await inMemory(seed);
      for (const [what, count] of report.counts) counts.set(what, (counts.get(what) ?? 0) + count);
    }
    expect(WHAT_HAPPENS.filter((what) => !counts.has(what))).toEqual([]);
  });

  it(
    `keeps every promise in ${SQLITE_SEEDS} worlds on a real SQLite file that is closed and opened again`,
    { timeout: 120_000 },
    async () => {
      for (let seed = 1; seed <= SQLITE_SEEDS; seed++) await inFile(seed);
    },
  );

  it("does the same again with the same seed, byte for byte, and something else with another", async () => {
    const first = await inMemory(7);
    expect(await inMemory(7)).toEqual(first);
    const other = await inMemory(8);
    expect(other.traceHash).not.toBe(first.traceHash);
    expect(other.journalHash).not.toBe(first.journalHash);
  });

  it("does the same again on a file", async () => {
    expect(await inFile(7)).toEqual(await inFile(7));
  });
});
