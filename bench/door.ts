/**
 * The interactive door under many streams: what an idle one costs, what a stalled reader costs and whom it holds up, and what the door adds to
 * the time that a provider takes. The server is a process of its own, and so is the provider; the clients are this process.
 */

import { setTimeout as pause } from "node:timers/promises";
import type { BenchContext, Row } from "./context.ts";
import { DoorConnection, type DoorStream } from "./door-clients.ts";
import { startDoorServer, startSlowProvider, type DoorServer } from "./door-process.ts";
import { pairedRatio, quantile, Stopwatch, takeTurns, type Figure } from "./statistics.ts";

const CONNECTIONS = 20;
const IDLE_STREAMS = 2_000;
const STALLED_STREAMS = 200;
/** Pieces that a turn says as fast as they are taken, and then one after the other. */
const STALLED_PIECES = 256;
const PIECE_KIB = 4;
const OTHER_STREAMS = 20;
const OTHER_ROUNDS = 40;
const CONCURRENT_TURNS = 50;
const TURNS_OF_EACH = 20;
const PROVIDER_MS = 300;
/** About what a turn of the slow provider takes: streams begin within it, one after the other. */
const SPREAD_MS = 500;

/** Measures the `door` group. */
export async function measureDoor(context: BenchContext): Promise<Row[]> {
  return [...(await measureIdle(context)), ...(await measureStalled(context)), ...(await measureFirstDelta(context))];
}

/** Streams over several connections, each with a session that has started. */
class Streams implements Disposable {
  readonly all: DoorStream[] = [];
  readonly #connections: readonly DoorConnection[];

  constructor(url: string) {
    this.#connections = Array.from({ length: CONNECTIONS }, () => new DoorConnection(url));
  }

  /** Opens streams, as many at a time as there are connections. */
  async open(count: number, model?: string): Promise<void> {
    for (let opened = 0; opened < count; opened += CONNECTIONS) {
      const streams = this.#connections.slice(0, count - opened).map((connection) => connection.open());
      await Promise.all(streams.map((stream) => stream.start(model)));
      this.all.push(...streams);
    }
  }

  [Symbol.dispose](): void {
    for (const stream of this.all) stream.cut();
    for (const connection of this.#connections) connection[Symbol.dispose]();
  }
}

/** Resident memory of the server. A first round, which is closed again, fills what allocators keep. */
async function measureIdle(context: BenchContext): Promise<Row[]> {
  const count = context.scale(IDLE_STREAMS, IDLE_STREAMS / 10);
  await using server = await startDoorServer(context.newFolder());
  const fresh = await server.settled();
  const opened: number[] = [];
  const closed: number[] = [];
  for (let round = 0; round < 2; round++) {
    context.progress(`${count} idle streams: round ${round}`);
    using streams = new Streams(server.url);
    await streams.open(count);
    opened.push((await server.settled()).rssBytes);
    streams[Symbol.dispose]();
    closed.push(await idleAgain(server));
  }
  const [first = 0, second = 0] = opened;
  const [between = 0] = closed;
  const name = `${count.toLocaleString("en-GB")} idle streams on ${CONNECTIONS} connections`;
  return [
    {
      ...megabytes(`${name}, memory above the idle server`, second - between),
      target: { of: "value", bound: "at-most", limit: 80 },
      note: `${((second - between) / count / 1_000).toFixed(1)} kB a stream`,
    },
    { ...megabytes(`${name}, above a server that has just started`, first - fresh.rssBytes) },
  ];
}

/** The server notices after a moment that its clients have gone. */
async function idleAgain(server: DoorServer): Promise<number> {
  await pause(1_000);
  return (await server.settled()).rssBytes;
}

/** Turns that run and whose readers read nothing; beside them streams whose turns are timed, taking turns with such of a server without them. */
async function measureStalled(context: BenchContext): Promise<Row[]> {
  const count = context.scale(STALLED_STREAMS, STALLED_STREAMS / 10);
  await using quiet = await startDoorServer(context.newFolder());
  await using server = await startDoorServer(context.newFolder());
  using alone = new Streams(quiet.url);
  using beside = new Streams(server.url);
  using stalled = new Streams(server.url);
  await alone.open(OTHER_STREAMS);
  await beside.open(OTHER_STREAMS);
  await stalled.open(count);
  const idle = await server.settled();
  for (const stream of stalled.all) {
    stream.stall();
    stream.say({ case: "userMessage", value: { content: `hold ${STALLED_PIECES}` } });
  }
  context.progress(`${count} stalled readers: waiting for their turns`);
  let said = await server.settled();
  while (said.pieces < count * STALLED_PIECES) said = await server.settled();
  const name = `turns of ${OTHER_STREAMS} other streams`;
  const timed = await takeTurns(context, name, context.scale(OTHER_ROUNDS, OTHER_ROUNDS / 4), {
    alone: () => turnsOnAll(alone.all),
    beside: () => turnsOnAll(beside.all),
  });
  const later = await server.settled();
  await readAgain(stalled.all);
  return [
    ...heldRows(
      count,
      [said, later].map(({ rssBytes, pieces }) => ({ bytes: rssBytes - idle.rssBytes, pieces })),
    ),
    { group: "door", name: `${name}, alone`, value: timed.alone.median, unit: "turns/s", spread: timed.alone.spread },
    {
      group: "door",
      name: `${name}, beside them`,
      value: timed.beside.median,
      unit: "turns/s",
      spread: timed.beside.spread,
      ratio: pairedRatio(timed.beside, timed.alone),
      target: { of: "ratio", bound: "at-least", limit: 0.8 },
    },
  ];
}

/** What each stalled reader may take, with what its turn has said. */
const STALLED_MB = 1.25;

/** Right after the turns have said most of it, and after the others' turns. */
function heldRows(count: number, held: readonly { readonly bytes: number; readonly pieces: number }[]): Row[] {
  return held.map(({ bytes, pieces }, index) => ({
    ...megabytes(`${count} running turns whose readers stall, memory above the idle server${index === 0 ? "" : ", later"}`, bytes),
    target: { of: "value", bound: "at-most", limit: count * STALLED_MB },
    note: `each has said ${Math.round((pieces / count) * PIECE_KIB)} KiB`,
  }));
}

/** Nothing of what was said is lost to readers that were stalled: they read it, and then how their turn ended. */
async function readAgain(streams: readonly DoorStream[]): Promise<void> {
  const over = streams.map((stream) => stream.next("turnComplete"));
  for (const stream of streams) {
    stream.read();
    stream.say({ case: "cancelTurn", value: {} });
  }
  await Promise.all(over);
}

/** A short turn on every stream at once. */
async function turnsOnAll(streams: readonly DoorStream[]): Promise<Figure> {
  const watch = new Stopwatch();
  const over = streams.map((stream) => stream.next("turnComplete"));
  for (const stream of streams) stream.say({ case: "userMessage", value: { content: "hello" } });
  await Promise.all(over);
  return watch.figure(streams.length);
}

/** From a user's message to the first word of the answer, against what the provider took for its first word, turn by turn. */
async function measureFirstDelta(context: BenchContext): Promise<Row[]> {
  await using provider = await startSlowProvider(PROVIDER_MS);
  await using server = await startDoorServer(context.newFolder(), provider.url);
  using streams = new Streams(server.url);
  await streams.open(CONCURRENT_TURNS, "slow");
  const turns = context.scale(TURNS_OF_EACH, TURNS_OF_EACH / 4);
  await firstDeltasMs(streams.all, "warm-up", turns / 2);
  await provider.tookMs();
  context.progress(`first deltas at ${CONCURRENT_TURNS} concurrent turns`);
  const here = await firstDeltasMs(streams.all, "turn", turns);
  const took = await provider.tookMs();
  const pairs = [...here].flatMap(([content, ms]) => {
    const providerMs = took.get(content);
    return providerMs === undefined ? [] : [{ ratio: ms / providerMs, addedMs: ms - providerMs }];
  });
  if (pairs.length !== CONCURRENT_TURNS * turns) throw new Error("the provider was not asked once for each turn");
  const added = pairs.map(({ addedMs }) => addedMs);
  const name = `first delta, ${CONCURRENT_TURNS} concurrent turns, provider ${PROVIDER_MS} ms`;
  return [
    {
      group: "door",
      name: `${name}, p50`,
      value: quantile([...here.values()], 0.5),
      unit: "ms",
      ratio: quantile(
        pairs.map(({ ratio }) => ratio),
        0.5,
      ),
    },
    {
      group: "door",
      name: `${name}, p99`,
      value: quantile([...here.values()], 0.99),
      unit: "ms",
      ratio: quantile(
        pairs.map(({ ratio }) => ratio),
        0.99,
      ),
      target: { of: "ratio", bound: "at-most", limit: 1.2 },
      note: `added to the provider's: p50 ${quantile(added, 0.5).toFixed(1)} ms, p99 ${quantile(added, 0.99).toFixed(1)} ms`,
    },
  ];
}

/** By what was said. */
async function firstDeltasMs(streams: readonly DoorStream[], word: string, turns: number): Promise<ReadonlyMap<string, number>> {
  const timesMs = new Map<string, number>();
  await Promise.all(
    streams.map(async (stream, index) => {
      await pause((index * SPREAD_MS) / streams.length);
      for (let turn = 0; turn < turns; turn++) {
        const content = `${word} ${turn} of ${index}`;
        const first = stream.next("textDelta");
        const over = stream.next("turnComplete");
        const sinceMs = performance.now();
        stream.say({ case: "userMessage", value: { content } });
        await first;
        timesMs.set(content, performance.now() - sinceMs);
        await over;
      }
    }),
  );
  return timesMs;
}

function megabytes(name: string, bytes: number): Row {
  return { group: "door", name, value: bytes / 1e6, unit: "MB" };
}
