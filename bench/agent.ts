/**
 * The agent's reference turn: against the journal alone making the very same commits, on the disk, and late in a session that carries its
 * whole history.
 */

import { statSync } from "node:fs";
import { join } from "node:path";
import { measureAgainstJournal, type TurnKind } from "./against-journal.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { runTurn } from "./host.ts";
import { longRun, medianCost, timedTurn, type LongRun, type TurnCost } from "./long-run.ts";
import { REFERENCE_SEED, referenceController, referenceInput } from "./reference-turn.ts";
import { median, spread } from "./statistics.ts";
import { createSession, openStore, withStore } from "./stores.ts";

const REFERENCE_TURNS: TurnKind = {
  group: "agent",
  name: "reference turns",
  newController: referenceController,
  seed: REFERENCE_SEED,
  input: referenceInput(),
};
/** Sessions are short here: what a long one costs is a figure of its own. */
const LOADS = [
  { sessions: 1, turns: 60 },
  { sessions: 16, turns: 40 },
] as const;
const DISK_TARGET: Target = { of: "value", bound: "at-most", limit: 6_000 };
const LONG_TARGET: Target = { of: "ratio", bound: "at-most", limit: 1.5 };

/** Measures the `agent` group. */
export async function measureAgent(context: BenchContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { sessions, turns } of LOADS) {
    const load = { sessions, turns: context.scale(turns, turns / 2), rounds: context.scale(15, 3) };
    rows.push(...(await measureAgainstJournal(context, REFERENCE_TURNS, load)));
  }
  return [...rows, await bytesOnDisk(context), ...(await longSession(context))];
}

/** What a turn takes of the file of a journal that was closed in order. */
async function bytesOnDisk(context: BenchContext): Promise<Row> {
  const sessions = context.scale(20, 5);
  const turns = 50;
  const folder = context.newFolder();
  const store = await openStore(folder, "inline");
  try {
    await using controller = referenceController(store);
    for (let count = 0; count < sessions; count++) {
      context.progress(`reference turns on the disk: session ${count + 1} of ${sessions}`);
      const session = await createSession(store, REFERENCE_SEED);
      for (let turn = 0; turn < turns; turn++) await runTurn(controller, store, session, REFERENCE_TURNS.input);
    }
  } finally {
    await store[Symbol.asyncDispose]();
  }
  const value = statSync(join(folder, "journal.sqlite")).size / (sessions * turns);
  context.removeFolder(folder);
  return { group: "agent", name: "bytes of the file for a turn", value, unit: "bytes", target: DISK_TARGET };
}

const EARLY_TURN = 10;
const LATE_TURN = 1_000;
const WINDOW_TURNS = 11;
const WARM_UP_TURNS = 300;

async function longSession(context: BenchContext): Promise<Row[]> {
  const runs: LongRun[] = [];
  const input = referenceInput(100_000_000);
  const lateTurn = context.scale(LATE_TURN, 200);
  for (let round = 0; round < context.scale(3, 1); round++) {
    await withStore(context, "inline", async (store) => {
      await using controller = referenceController(store);
      const host = { store, controller };
      for (let turn = 0; turn < WARM_UP_TURNS; turn++) await timedTurn(host, await createSession(store, REFERENCE_SEED), input);
      const label = `reference turns in a long session, round ${round + 1}`;
      const turns = [EARLY_TURN, lateTurn];
      runs.push(await longRun(context, host, { turns, windowTurns: WINDOW_TURNS, input, seed: REFERENCE_SEED, label }));
    });
  }
  const [early, late] = [EARLY_TURN, lateTurn].map((turn) => runs.map((run) => run.windows.get(turn)!));
  const fresh = runs.map((run) => run.fresh.get(lateTurn)!);
  return [
    rowOf(`turns around the ${EARLY_TURN}th`, early!),
    {
      ...rowOf(`turns around the ${lateTurn.toLocaleString("en-GB")}th`, late!),
      ratio: median(late!.map(({ ms }, round) => ms / early![round]!.ms)),
      target: LONG_TARGET,
      note: `${median(late!.map(({ ms }, round) => ms / fresh[round]!.ms)).toFixed(2)} × a fresh session at that moment`,
    },
  ];
}

function rowOf(name: string, costs: readonly TurnCost[]): Row {
  const timesMs = costs.map(({ ms }) => ms);
  return { group: "agent", name, value: median(timesMs), unit: "ms", spread: spread(timesMs), cpuUs: medianCost(costs).cpuUs };
}
