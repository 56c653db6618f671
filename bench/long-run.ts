/**
 * One journal that grows by turns, and what its turns cost around the nth. Beside each window of the long journal a fresh one runs the same
 * turns, one for one: the machine's mood of that moment meets both.
 */

import type { SessionUid } from "../src/base/index.ts";
import type { Controller } from "../src/controller/index.ts";
import type { JournalStore, SessionSeed } from "../src/journal/index.ts";
import type { BenchContext } from "./context.ts";
import { runTurn, type TurnInput } from "./host.ts";
import { median, Stopwatch } from "./statistics.ts";
import { createSession } from "./stores.ts";

/** A host with one journal in it. */
export interface Host {
  readonly store: JournalStore;
  readonly controller: Controller;
}

/** What a turn took. */
export interface TurnCost {
  readonly ms: number;
  readonly cpuUs: number;
}

/** What one run gave: the medians of the turns in each window, by the turn that names it, and of the fresh ones beside them. */
export interface LongRun {
  readonly windows: ReadonlyMap<number, TurnCost>;
  readonly fresh: ReadonlyMap<number, TurnCost>;
  readonly lastSeq: number;
}

export interface LongRunOptions {
  /** The turns that name the windows, in their order. */
  readonly turns: readonly number[];
  /** How many turns a window has, its own in the middle. */
  readonly windowTurns: number;
  readonly input: TurnInput;
  readonly seed: Partial<SessionSeed>;
  readonly label: string;
}

/** Runs a journal up to the last window. A window that begins with the very first turn is that turn alone. */
export async function longRun(context: BenchContext, host: Host, options: LongRunOptions): Promise<LongRun> {
  const { turns, windowTurns, input, seed, label } = options;
  const session = await createSession(host.store, seed);
  const windows = new Map<number, TurnCost>();
  const fresh = new Map<number, TurnCost>();
  let done = 0;
  for (const turn of turns) {
    const first = Math.max(1, turn - Math.floor(windowTurns / 2));
    context.progress(`${label}: on the way to turn ${turn}`);
    for (; done < first - 1; done++) await runTurn(host.controller, host.store, session, input);
    context.settle();
    const beside = await createSession(host.store, seed);
    const costs: TurnCost[] = [];
    const freshCosts: TurnCost[] = [];
    const count = turn === 1 ? 1 : windowTurns;
    for (let index = 0; index < count; index++, done++) {
      costs.push(await timedTurn(host, session, input));
      freshCosts.push(await timedTurn(host, beside, input));
    }
    windows.set(turn, medianCost(costs));
    fresh.set(turn, medianCost(freshCosts));
  }
  const row = await host.store.get(session);
  return { windows, fresh, lastSeq: row?.projection.lastSeq ?? 0 };
}

export async function timedTurn({ controller, store }: Host, session: SessionUid, input: TurnInput): Promise<TurnCost> {
  const watch = new Stopwatch();
  await runTurn(controller, store, session, input);
  return { ms: watch.elapsedMs(), cpuUs: watch.cpuUs() };
}

export function medianCost(costs: readonly TurnCost[]): TurnCost {
  return { ms: median(costs.map(({ ms }) => ms)), cpuUs: median(costs.map(({ cpuUs }) => cpuUs)) };
}
