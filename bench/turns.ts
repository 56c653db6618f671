/**
 * Turns a second and their latency at 1, 16 and 64 sessions that run one turn after the other, with the echo harness and a
 * model that answers at once. In process against the journal alone making the very same commits; over gRPC against a real
 * server in a process of its own.
 */

import type { SessionUid } from "../src/base/index.ts";
import { createClient, type Client } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { CommitScript } from "./commits.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { newController, runTurn } from "./host.ts";
import { startServerProcess } from "./server-process.ts";
import { median, pairedRatio, quantile, Stopwatch, takeTurns, type Rounds } from "./statistics.ts";
import { createSession, createSessions, withStore } from "./stores.ts";

/** How many sessions run turns at once, and how many turns each of them runs in one round. */
const LOADS = [
  { sessions: 1, turns: 800 },
  { sessions: 16, turns: 150 },
  { sessions: 64, turns: 60 },
] as const;
const TARGET: Target = { of: "ratio", bound: "at-least", limit: 0.7 };
const INPUT = "Summarise what changed since yesterday, and say what is left to do.";

/** Measures the `turns` group. */
export async function measureTurns(context: BenchContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { sessions, turns } of LOADS) rows.push(...(await measureInProcess(context, sessions, context.scale(turns, turns / 5))));
  return [...rows, ...(await measureOverGrpc(context))];
}

/** Each session's turns, one after the other, through the SDK: every record and delta of a turn is received and decoded. */
async function measureOverGrpc(context: BenchContext): Promise<Row[]> {
  const folder = context.newFolder();
  await using server = await startServerProcess(folder);
  await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
  const rows: Row[] = [];
  for (const load of LOADS) {
    const turns = context.scale(load.turns, load.turns / 5);
    const label = `turns over gRPC, ${plural(load.sessions)}`;
    const latenciesMs: number[] = [];
    const { grpc } = await takeTurns(context, label, context.scale(7, 2), {
      grpc: async (round) => {
        if (round === 1) latenciesMs.length = 0;
        const uids = await Promise.all(Array.from({ length: load.sessions }, () => client.sessions.create()));
        const watch = new Stopwatch();
        await Promise.all(uids.map(({ metadata }) => chained(turns, latenciesMs, () => remoteTurn(client, metadata?.uid ?? ""))));
        return watch.figure(load.sessions * turns);
      },
    });
    rows.push(
      { group: "turns", name: label, value: grpc.median, unit: "turns/s", spread: grpc.spread },
      ...latencyRows(label, latenciesMs),
    );
  }
  return rows;
}

async function remoteTurn(client: Client, session: string): Promise<void> {
  const end = await client.sessions.exec({ session, inputs: INPUT }).finish();
  if (end.kind !== "ended" || end.state !== "COMPLETED") throw new Error("a turn did not complete");
}

function plural(sessions: number): string {
  return `${sessions} session${sessions === 1 ? "" : "s"}`;
}

async function measureInProcess(context: BenchContext, sessions: number, turns: number): Promise<Row[]> {
  const label = `turns in process, ${plural(sessions)}`;
  const script = await takenDown(context, sessions, turns);
  const latenciesMs: number[] = [];
  const rounds = await takeTurns(context, label, context.scale(7, 2), {
    turns: (round) =>
      withStore(context, "inline", async (store) => {
        if (round === 1) latenciesMs.length = 0;
        await using controller = newController(store);
        const uids = await createSessions(store, sessions);
        const watch = new Stopwatch();
        await Promise.all(uids.map((uid) => chained(turns, latenciesMs, () => runTurn(controller, store, uid, [INPUT]))));
        return watch.figure(sessions * turns);
      }),
    journal: () =>
      withStore(context, "inline", async (store) => {
        for (const uid of script.sessions()) await createSession(store, { uid });
        const watch = new Stopwatch();
        await script.run(store);
        return watch.figure(sessions * turns);
      }),
  });
  const note = `${script.appends / (sessions * turns)} appends a turn`;
  return [
    { ...rowOf(`${label}, the journal alone`, rounds.journal), note },
    { ...rowOf(label, rounds.turns), ratio: pairedRatio(rounds.turns, rounds.journal), target: TARGET },
    ...latencyRows(label, latenciesMs),
  ];
}

function rowOf(name: string, { median: value, spread, cpuUs }: Rounds): Row {
  return { group: "turns", name, value, unit: "turns/s", spread, cpuUs };
}

/** The commits of such turns, as a host makes them. */
async function takenDown(context: BenchContext, sessions: number, turns: number): Promise<CommitScript> {
  const script = new CommitScript();
  await withStore(context, "inline", async (store) => {
    const recorded = script.recorded(store);
    await using controller = newController(recorded);
    const uids: SessionUid[] = await createSessions(store, sessions);
    await Promise.all(uids.map((uid) => chained(turns, [], () => runTurn(controller, recorded, uid, [INPUT]))));
  });
  return script;
}

/** Does `work` `count` times, one after the other, and adds how long each took. */
async function chained(count: number, latenciesMs: number[], work: () => Promise<void>): Promise<void> {
  for (let index = 0; index < count; index++) {
    const watch = new Stopwatch();
    await work();
    latenciesMs.push(watch.elapsedMs());
  }
}

function latencyRows(label: string, latenciesMs: readonly number[]): Row[] {
  const figure = { group: "turns", unit: "ms" } as const;
  return [
    { ...figure, name: `${label}, p50`, value: median(latenciesMs) },
    { ...figure, name: `${label}, p99`, value: quantile(latenciesMs, 0.99) },
  ];
}
