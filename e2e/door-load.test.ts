/** The interactive door under many streams, in small: `npm run bench -- --only door` has the figures. */

import { describe, expect, it, onTestFinished } from "vitest";
import { DoorConnection, type DoorStream } from "../bench/door-clients.ts";
import { startDoorServer, type DoorServer } from "../bench/door-process.ts";
import { newDataFolder } from "./support/server-process.ts";

async function serve(): Promise<DoorServer> {
  const server = await startDoorServer(newDataFolder());
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

/** Streams on four connections, whose sessions have started. */
async function open(server: DoorServer, count: number): Promise<readonly DoorStream[]> {
  const connections = Array.from({ length: 4 }, () => new DoorConnection(server.url));
  onTestFinished(() => connections.forEach((connection) => connection[Symbol.dispose]()));
  const streams: DoorStream[] = [];
  for (let opened = 0; opened < count; opened += connections.length) {
    const some = connections.map((connection) => connection.open());
    await Promise.all(some.map((stream) => stream.start()));
    streams.push(...some);
  }
  return streams;
}

/** Runs a short turn on each stream. */
async function turns(streams: readonly DoorStream[]): Promise<void> {
  const over = streams.map((stream) => stream.next("turnComplete"));
  for (const stream of streams) stream.say({ case: "userMessage", value: { content: "hello" } });
  await Promise.all(over);
}

/** Enough that what each of them leaves would show. */
const STREAMS = 100;

describe("many streams", () => {
  it("cost little while they are idle, and leave nothing once they have ended", async () => {
    const server = await serve();
    const heldBytes: number[] = [];
    const leftBytes: number[] = [];
    for (let round = 0; round < 3; round++) {
      const streams = await open(server, STREAMS);
      heldBytes.push((await server.settled()).heapBytes);
      await Promise.all(streams.map((stream) => stream.finish()));
      leftBytes.push((await server.settled()).heapBytes);
    }
    const [first = 0, , last = 0] = leftBytes;
    // 24 kB each where this was written; streams that are not let go of would have left as much as they held.
    expect((heldBytes[2]! - last) / STREAMS).toBeLessThan(40_000);
    expect((last - first) / (2 * STREAMS)).toBeLessThan(5_000);
  });

  it("whose readers stall hold up nobody and take little, and go on when their readers do", async () => {
    const server = await serve();
    const stalled = await open(server, 20);
    const others = await open(server, 20);
    const idle = await server.settled();
    for (const stream of stalled) {
      stream.stall();
      stream.say({ case: "userMessage", value: { content: "hold 256" } });
    }
    await expect.poll(async () => (await server.settled()).pieces, { timeout: 60_000 }).toBeGreaterThanOrEqual(20 * 256);
    for (let round = 0; round < 5; round++) await turns(others);
    const { rssBytes } = await server.settled();
    expect((rssBytes - idle.rssBytes) / 20).toBeLessThan(3_000_000);
    const over = stalled.map((stream) => stream.next("turnComplete"));
    for (const stream of stalled) {
      stream.read();
      stream.say({ case: "cancelTurn", value: {} });
    }
    await Promise.all(over);
    for (const stream of stalled) expect(stream.textBytes).toBeGreaterThan(100_000);
    await turns(stalled);
  });
});
