/** Clients that watch: slowly, from anywhere, cut off at any moment, and going on where they were at another host. */

import type { Seq, SessionUid } from "../../base/index.ts";
import type { LiveItem } from "../../controller/index.ts";
import type { SeenStream } from "../invariants.ts";
import type { Operation } from "./client-operations.ts";
import type { SimHost } from "./sim-host.ts";
import type { World } from "./world.ts";

/** A client that watches one session for a while. */
export const watch: Operation = (world) => {
  const { dice, monitor, rules } = world;
  const session = dice.pick(world.sessions.slice(-5));
  if (session === undefined || !rules.has(session)) return;
  const fromSeq = dice.between(1, monitor.durableSeq(session) + 1) as Seq;
  const stream: SeenStream = { session, fromSeq, records: [] };
  world.ledger.streams.push(stream);
  const leaves = new AbortController();
  world.time.clock.after(dice.between(10, 40_000), () => leaves.abort());
  void watchOn(world, stream, leaves.signal);
};

/** Watches until the client leaves; a lost connection is made again at another host, from the last record that it saw. */
async function watchOn(world: World, stream: SeenStream, signal: AbortSignal): Promise<void> {
  const slowMs = world.dice.pick([0, 0, 7, 300]);
  while (!signal.aborted) {
    const host = world.dice.pick(world.up);
    if (host === undefined) {
      await world.time.clock.sleep(50);
      continue;
    }
    await world.call("watch", host, stream.session, {}, () => watchAt(world, { host, stream, signal, slowMs }));
    await world.time.clock.sleep(5);
  }
}

interface Watcher {
  readonly host: SimHost;
  readonly stream: SeenStream;
  readonly signal: AbortSignal;
  /** How long the client takes for each item. */
  readonly slowMs: number;
}

/** One connection. It ends when the client leaves, when the host dies, and at times for no reason. */
async function watchAt(world: World, { host, stream, signal, slowMs }: Watcher): Promise<string> {
  const { session, fromSeq, records } = stream;
  const cut = new AbortController();
  world.time.clock.after(world.dice.between(5, 20_000), () => cut.abort());
  const ended = AbortSignal.any([signal, cut.signal]);
  const nextSeq = (fromSeq + records.length) as Seq;
  const items = host.controller.watch({ session, fromSeq: nextSeq, signal: ended, deltas: world.dice.chance(500) });
  const before = records.length;
  for (let item = await items.next(); item.done !== true; item = await items.next()) {
    if (host.life.isDead || ended.aborted) break;
    take(stream, item.value);
    if (slowMs > 0) await world.time.clock.sleep(slowMs);
  }
  return `watched ${nameOf(world, session)} ${nextSeq}…, ${records.length - before} records`;
}

function take(stream: SeenStream, item: LiveItem): void {
  if (item.kind === "record") stream.records.push({ seq: item.record.seq, contentHash: item.record.contentHash });
}

function nameOf(world: World, session: SessionUid): string {
  return world.nameOf(session);
}
