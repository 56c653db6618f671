/** What the interactive door adds to the time that a provider takes for its first word. */

import { setTimeout as pause } from "node:timers/promises";
import type { BenchContext, Row } from "./context.ts";
import type { DoorStream } from "./door-clients.ts";
import { startDoorServer, startSlowProvider } from "./door-process.ts";
import { Streams } from "./door-streams.ts";
import { quantile } from "./statistics.ts";

const CONCURRENT_TURNS = 50;
const TURNS_OF_EACH = 20;
const PROVIDER_MS = 300;
/** About what a turn of the slow provider takes: streams begin within it, one after the other. */
const SPREAD_MS = 500;

/** From a user's message to the first word of the answer, against what the provider took for its first word, turn by turn. */
export async function measureFirstDelta(context: BenchContext): Promise<Row[]> {
  await using provider = await startSlowProvider(PROVIDER_MS);
  await using server = await startDoorServer(context.newFolder(), provider.url);
  using streams = new Streams(server.url);
  await streams.open(CONCURRENT_TURNS, "slow");
  const turns = context.scale(TURNS_OF_EACH, TURNS_OF_EACH / 4);
  await firstDeltasMs(streams.all, "warm-up", turns / 2);
  const rows: Row[] = [];
  for (const [how, measure] of [
    ["begun at different moments", firstDeltasMs],
    ["begun all at once", firstDeltasAtOnceMs],
  ] as const) {
    context.progress(`first deltas at ${CONCURRENT_TURNS} concurrent turns, ${how}`);
    await provider.tookMs();
    const here = await measure(streams.all, how, turns);
    rows.push(...firstDeltaRows(how, here, await provider.tookMs()));
  }
  return rows;
}

/** By what was said: the times here, and those that the provider took. */
function firstDeltaRows(how: string, here: ReadonlyMap<string, number>, took: ReadonlyMap<string, number>): Row[] {
  const pairs = [...here].flatMap(([content, ms]) => {
    const providerMs = took.get(content);
    return providerMs === undefined ? [] : [{ ms, ratio: ms / providerMs, addedMs: ms - providerMs }];
  });
  if (pairs.length !== here.size) throw new Error("the provider was not asked once for each turn");
  const name = `first delta, ${CONCURRENT_TURNS} turns ${how}, provider ${PROVIDER_MS} ms`;
  const at = (share: number): Pick<Row, "value" | "ratio" | "note"> => {
    const of = (figure: (pair: (typeof pairs)[number]) => number): number => quantile(pairs.map(figure), share);
    return {
      value: of(({ ms }) => ms),
      ratio: of(({ ratio }) => ratio),
      note: `${of(({ addedMs }) => addedMs).toFixed(1)} ms more than the provider took`,
    };
  };
  return [
    { group: "door", name: `${name}, p50`, unit: "ms", ...at(0.5) },
    { group: "door", name: `${name}, p99`, unit: "ms", ...at(0.99), target: { of: "ratio", bound: "at-most", limit: 1.2 } },
  ];
}

/** By what was said: turns of each stream, one after the other, that begin whenever the last one is over. */
async function firstDeltasMs(streams: readonly DoorStream[], word: string, turns: number): Promise<ReadonlyMap<string, number>> {
  const timesMs = new Map<string, number>();
  await Promise.all(
    streams.map(async (stream, index) => {
      await pause((index * SPREAD_MS) / streams.length);
      for (let turn = 0; turn < turns; turn++) await firstDeltaMs(stream, `${word} ${turn} of ${index}`, timesMs);
    }),
  );
  return timesMs;
}

/** By what was said: turns that all streams begin in the same moment. */
async function firstDeltasAtOnceMs(streams: readonly DoorStream[], word: string, turns: number): Promise<ReadonlyMap<string, number>> {
  const timesMs = new Map<string, number>();
  for (let turn = 0; turn < turns; turn++) {
    await Promise.all(streams.map((stream, index) => firstDeltaMs(stream, `${word} ${turn} of ${index}`, timesMs)));
  }
  return timesMs;
}

async function firstDeltaMs(stream: DoorStream, content: string, timesMs: Map<string, number>): Promise<void> {
  const first = stream.next("textDelta");
  const over = stream.next("turnComplete");
  const sinceMs = performance.now();
  stream.say({ case: "userMessage", value: { content } });
  await first;
  timesMs.set(content, performance.now() - sinceMs);
  await over;
}
