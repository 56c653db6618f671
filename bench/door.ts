/**
 * The interactive door under many streams: what an idle one costs, what a stalled reader costs and whom it holds up, and what the door adds to
 * the time that a provider takes. The server is a process of its own, and so is the provider; the clients are this process.
 */

import type { BenchContext, Row } from "./context.ts";
import type { DoorStream } from "./door-clients.ts";
import { measureFirstDelta } from "./door-first-delta.ts";
import { measureIdle } from "./door-idle.ts";
import { startDoorServer } from "./door-process.ts";
import { megabytes, Streams } from "./door-streams.ts";
import { pairedRatio, Stopwatch, takeTurns, type Figure } from "./statistics.ts";

const STALLED_STREAMS = 200;
/** Pieces that a turn says as fast as they are taken, and then one after the other. */
const STALLED_PIECES = 256;
const PIECE_KIB = 4;
const OTHER_STREAMS = 20;
const OTHER_ROUNDS = 40;

/** Measures the `door` group. */
export async function measureDoor(context: BenchContext): Promise<Row[]> {
  return [...(await measureIdle(context)), ...(await measureStalled(context)), ...(await measureFirstDelta(context))];
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
