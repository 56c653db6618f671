/** What happens to hosts, and to time. */

import { sweep } from "../../controller/index.ts";
import { violation } from "../invariants.ts";
import type { World } from "./world.ts";

/** The most hosts that are up at once. */
const HOSTS_MAX = 4;

/** Something that happens to hosts or time. Resolves when it has happened. */
export type Event = (world: World) => Promise<void>;

export const hostDies: Event = async (world) => {
  const host = world.dice.pick(world.up);
  if (host !== undefined) world.kill(host);
};

export const hostStarts: Event = async (world) => {
  if (world.up.length < HOSTS_MAX) world.startHost(world.dice.chance(150) ? "2" : "1");
};

/** A rolling restart: it takes no more turns, waits for a while, interrupts the rest, and is gone. */
export const hostShutsDown: Event = async (world) => {
  const host = world.dice.pick(world.up);
  if (host === undefined) return;
  host.isClosing = true;
  const graceMs = world.dice.pick([0, 500, 30_000]);
  world.note(`${host.name} shuts down, grace ${graceMs} ms`);
  world.count("shutdown");
  void host.controller.shutdown({ graceMs }).then(() => {
    if (host.life.isDead) return;
    const held = world.sessions.find((session) => world.rules.holder(session, world.time.clock.nowMs()) === host.id);
    if (held !== undefined && host.road.faults === 0) {
      world.ledger.found.push(violation("progress", { session: held }, "a host has shut down and holds a session still"));
    }
    world.kill(host);
  });
};

/** A stopped process, or one that the network has cut off: it goes on later as if nothing had been. */
export const hostPauses: Event = async (world) => {
  const host = world.dice.pick(world.up);
  if (host === undefined) return;
  const spanMs = world.dice.pick([200, 6_000, 40_000]);
  host.life.pause(spanMs);
  world.note(`${host.name} stands still for ${spanMs} ms`);
  world.count("pause");
};

/** Somebody sets a host's clock. */
export const clockIsSet: Event = async (world) => {
  const host = world.dice.pick(world.up);
  if (host === undefined) return;
  host.life.skewMs = world.dice.between(-600_000, 600_000);
  world.note(`${host.name}'s clock is off by ${host.life.skewMs} ms`);
};

export const powerFails: Event = async (world) => {
  world.note("the power fails");
  world.count("power cut");
  await world.cutPower();
};

/** A sweeper at work on one host: what was deleted goes, and what children share stays. */
export const sweeperRuns: Event = async (world) => {
  const host = world.dice.pick(world.up);
  if (host === undefined) return;
  const retentionMs = world.dice.pick([0, 5_000, 60_000]);
  void host.life.answered(sweep({ journal: host.store, clock: host.life.clock, retentionMs })).then(
    ({ reclaimed, kept }) => {
      world.note(`${host.name} has swept: ${reclaimed} reclaimed, ${kept} kept`);
      if (reclaimed > 0) world.count("reclaimed");
      if (kept > 0) world.count("kept for children");
    },
    (error: unknown) => {
      if (host.road.faults === 0 && !host.life.isDead)
        world.ledger.found.push(violation("answers", {}, `a sweep failed: ${String(error)}`));
    },
  );
};

export const timePasses: Event = async (world) => {
  await world.time.elapse(
    world.dice.weighted([
      [6, world.dice.between(1, 200)],
      [3, world.dice.between(1_000, 6_000)],
      [1, world.dice.between(16_000, 60_000)],
    ]),
  );
};
