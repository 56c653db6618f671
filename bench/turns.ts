/**
 * Turns a second and their latency at 1, 16 and 64 sessions that run one turn after the other, with the echo harness and a
 * model that answers at once. In process against the journal alone making the very same commits; over gRPC against a real
 * server in a process of its own.
 */

import { createClient, type Client } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { chained, latencyRows, measureAgainstJournal, sessionsText, type TurnKind } from "./against-journal.ts";
import type { BenchContext, Row } from "./context.ts";
import { newController } from "./host.ts";
import { startServerProcess } from "./server-process.ts";
import { Stopwatch, takeTurns } from "./statistics.ts";

/** How many sessions run turns at once, and how many turns each of them runs in one round. */
const LOADS = [
  { sessions: 1, turns: 800 },
  { sessions: 16, turns: 150 },
  { sessions: 64, turns: 60 },
] as const;
const INPUT = "Summarise what changed since yesterday, and say what is left to do.";
const ECHO_TURNS: TurnKind = {
  group: "turns",
  name: "turns in process",
  newController: (store) => newController(store),
  seed: {},
  input: { texts: [INPUT] },
};

/** Measures the `turns` group. */
export async function measureTurns(context: BenchContext): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { sessions, turns } of LOADS) {
    const load = { sessions, turns: context.scale(turns, turns / 5), rounds: context.scale(7, 2) };
    rows.push(...(await measureAgainstJournal(context, ECHO_TURNS, load)));
  }
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
    const label = `turns over gRPC, ${sessionsText(load.sessions)}`;
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
      ...latencyRows("turns", label, latenciesMs),
    );
  }
  return rows;
}

async function remoteTurn(client: Client, session: string): Promise<void> {
  const end = await client.sessions.exec({ session, inputs: INPUT }).finish();
  if (end.kind !== "ended" || end.state !== "COMPLETED") throw new Error("a turn did not complete");
}
