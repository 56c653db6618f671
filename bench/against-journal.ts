/** Turns in process, taking turns with the journal alone, which makes the very same commits. */

import type { SessionUid } from "../src/base/index.ts";
import type { Controller } from "../src/controller/index.ts";
import type { JournalStore, SessionSeed } from "../src/journal/index.ts";
import { CommitScript } from "./commits.ts";
import type { BenchContext, Group, Row, Target } from "./context.ts";
import { runTurn, type TurnInput } from "./host.ts";
import { median, pairedRatio, quantile, Stopwatch, takeTurns, type Rounds } from "./statistics.ts";
import { createSession, createSessions, withStore } from "./stores.ts";

const TARGET: Target = { of: "ratio", bound: "at-least", limit: 0.7 };

/** What is run: turns of one kind, on a host that is made for them. */
export interface TurnKind {
  readonly group: Group;
  /** What its rows begin with. */
  readonly name: string;
  readonly newController: (store: JournalStore) => Controller;
  /** What its sessions are created with. */
  readonly seed: Partial<SessionSeed>;
  readonly input: TurnInput;
}

/** How many sessions run turns at once, and how many each of them runs in one round. */
export interface Load {
  readonly sessions: number;
  readonly turns: number;
  readonly rounds: number;
}

/** Measures turns of a kind under a load. */
export async function measureAgainstJournal(context: BenchContext, kind: TurnKind, load: Load): Promise<Row[]> {
  const { sessions, turns } = load;
  const { group } = kind;
  const label = `${kind.name}, ${sessionsText(sessions)}`;
  const script = await takenDown(context, kind, load);
  const latenciesMs: number[] = [];
  const rounds = await takeTurns(context, label, load.rounds, {
    turns: (round) =>
      withStore(context, "inline", async (store) => {
        if (round === 1) latenciesMs.length = 0;
        await using controller = kind.newController(store);
        const uids = await createSessions(store, sessions, kind.seed);
        const watch = new Stopwatch();
        await Promise.all(uids.map((uid) => chained(turns, latenciesMs, () => runTurn(controller, store, uid, kind.input))));
        return watch.figure(sessions * turns);
      }),
    journal: () =>
      withStore(context, "inline", async (store) => {
        for (const uid of script.sessions()) await createSession(store, { ...kind.seed, uid });
        const watch = new Stopwatch();
        await script.run(store);
        return watch.figure(sessions * turns);
      }),
  });
  const note = `${script.appends / (sessions * turns)} appends a turn`;
  return [
    { ...rowOf(group, `${label}, the journal alone`, rounds.journal), note },
    { ...rowOf(group, label, rounds.turns), ratio: pairedRatio(rounds.turns, rounds.journal), target: TARGET },
    ...latencyRows(group, label, latenciesMs),
  ];
}

export function sessionsText(sessions: number): string {
  return `${sessions} session${sessions === 1 ? "" : "s"}`;
}

function rowOf(group: Group, name: string, { median: value, spread, cpuUs }: Rounds): Row {
  return { group, name, value, unit: "turns/s", spread, cpuUs };
}

/** The commits of such turns, as a host makes them. */
async function takenDown(context: BenchContext, kind: TurnKind, { sessions, turns }: Load): Promise<CommitScript> {
  const script = new CommitScript();
  await withStore(context, "inline", async (store) => {
    const recorded = script.recorded(store);
    await using controller = kind.newController(recorded);
    const uids: SessionUid[] = await createSessions(store, sessions, kind.seed);
    await Promise.all(uids.map((uid) => chained(turns, [], () => runTurn(controller, recorded, uid, kind.input))));
  });
  return script;
}

/** Does `work` `count` times, one after the other, and adds how long each took. */
export async function chained(count: number, latenciesMs: number[], work: () => Promise<void>): Promise<void> {
  for (let index = 0; index < count; index++) {
    const watch = new Stopwatch();
    await work();
    latenciesMs.push(watch.elapsedMs());
  }
}

/** The latencies of single turns. */
export function latencyRows(group: Group, label: string, latenciesMs: readonly number[]): Row[] {
  const figure = { group, unit: "ms" } as const;
  return [
    { ...figure, name: `${label}, p50`, value: median(latenciesMs) },
    { ...figure, name: `${label}, p99`, value: quantile(latenciesMs, 0.99) },
  ];
}
