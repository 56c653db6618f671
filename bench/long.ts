/**
 * One journal that grows to 100,000 events: what its 1st turn costs, and those around its 100th, 1,000th and 10,000th. A turn
 * costs what it does, not what went before it: with the echo harness, which reads no history, the later ones must cost no more
 * than the early ones. The chat harness sends its whole conversation to the model, so its turns grow with that by nature.
 */

import type { BenchContext, Row, Target } from "./context.ts";
import { newController, runTurn, type TurnInput } from "./host.ts";
import { longRun, medianCost, timedTurn, type Host, type LongRun, type TurnCost } from "./long-run.ts";
import { median, spread } from "./statistics.ts";
import { createSession, withStore } from "./stores.ts";

/** Events of one turn: ten, so that 10,000 turns are 100,000 events. */
const TURN_EVENTS = 10;
/** A window is this many turns around the one that names it. */
const WINDOW_TURNS = 100;
const WARM_UP_TURNS = 400;
const EARLY_TURN = 100;
const TARGET: Target = { of: "ratio", bound: "at-most", limit: 1.2 };
const INPUT = "And then?";

/** Measures the `long` group. */
export async function measureLong(context: BenchContext): Promise<Row[]> {
  const echo = await echoRuns(context, context.quick ? [EARLY_TURN, 1_000] : [EARLY_TURN, 1_000, 10_000]);
  return [...echo, ...(await chatRun(context, context.quick ? [1, 100] : [1, 100, 500]))];
}

async function echoRuns(context: BenchContext, turns: readonly number[]): Promise<Row[]> {
  const runs: LongRun[] = [];
  const firsts: TurnCost[] = [];
  for (let round = 0; round < context.scale(3, 1); round++) {
    await withStore(context, "inline", async (store) => {
      await using controller = newController(store);
      const host = { store, controller };
      const input = await inputFor(host);
      firsts.push(await firstTurns(host, input));
      const label = `long, round ${round + 1}`;
      runs.push(await longRun(context, host, { turns, windowTurns: WINDOW_TURNS, input, seed: {}, label }));
    });
  }
  const rows: Row[] = [rowOf("1st turn of a journal (100 journals)", firsts)];
  for (const turn of turns) {
    const againstEarly = runs.map((run) => run.windows.get(turn)!.ms / run.windows.get(EARLY_TURN)!.ms);
    const againstFresh = runs.map((run) => run.windows.get(turn)!.ms / run.fresh.get(turn)!.ms);
    rows.push({
      ...rowOf(
        `turns around the ${turn.toLocaleString("en-GB")}th`,
        runs.map((run) => run.windows.get(turn)!),
      ),
      ratio: turn === EARLY_TURN ? undefined : median(againstEarly),
      target: turn === turns.at(-1) ? TARGET : undefined,
      note: `${median(againstFresh).toFixed(2)} × a fresh journal at that moment`,
    });
  }
  const events = Math.max(...runs.map((run) => run.lastSeq));
  return [...rows, { group: "long", name: "events in the journal at its end", value: events, unit: "events" }];
}

function rowOf(name: string, costs: readonly TurnCost[]): Row {
  const timesMs = costs.map(({ ms }) => ms);
  return { group: "long", name, value: median(timesMs), unit: "ms", spread: spread(timesMs), cpuUs: medianCost(costs).cpuUs };
}

/** As many inputs as make a turn ten events. */
async function inputFor(host: Host): Promise<TurnInput> {
  const session = await createSession(host.store);
  await runTurn(host.controller, host.store, session, { texts: [INPUT] });
  const row = await host.store.get(session);
  const others = (row?.projection.lastSeq ?? 0) - 1;
  return { texts: Array.from({ length: TURN_EVENTS - others }, () => INPUT) };
}

/** The first turns of as many journals, after a warm-up of as many that are not counted. */
async function firstTurns(host: Host, input: TurnInput): Promise<TurnCost> {
  const costs: TurnCost[] = [];
  for (let journal = 0; journal < WARM_UP_TURNS + WINDOW_TURNS; journal++) {
    const session = await createSession(host.store);
    const cost = await timedTurn(host, session, input);
    if (journal >= WARM_UP_TURNS) costs.push(cost);
  }
  return medianCost(costs);
}

/** The chat harness, for information: each turn sends the model the whole conversation. */
async function chatRun(context: BenchContext, turns: readonly number[]): Promise<Row[]> {
  return withStore(context, "inline", async (store) => {
    await using controller = newController(store);
    const host = { store, controller };
    const input = { texts: [INPUT] };
    const seed = { harness: "chat" };
    for (let turn = 0; turn < WARM_UP_TURNS; turn++) await runTurn(controller, store, await createSession(store, seed), input);
    const { windows } = await longRun(context, host, { turns, windowTurns: WINDOW_TURNS, input, seed, label: "long, chat" });
    return [...windows].map(([turn, cost]) => ({
      ...rowOf(turn === 1 ? "chat, 1st turn (one)" : `chat, turns around the ${turn}th`, [cost]),
      spread: undefined,
      ratio: turn <= EARLY_TURN ? undefined : cost.ms / windows.get(EARLY_TURN)!.ms,
      note: "grows with what the model is sent",
    }));
  });
}
