/**
 * A world in which nothing goes wrong but one host's death, small enough to be read: what checkers of invariants are tried on, as it
 * is and falsified.
 */

import type { Seq, SessionUid } from "../../base/index.ts";
import type { RunningTurn } from "../../controller/index.ts";
import { textMessage } from "../../spi/index.ts";
import { emptySeed } from "../host.ts";
import type { Ledger, SessionEvidence } from "../invariants.ts";
import { makePeace } from "./peace.ts";
import type { SimHost } from "./sim-host.ts";
import { World, type WorldOptions } from "./world.ts";

/** A world in which a turn was interrupted and resumed, a session forked and watched, and everything replayed. */
export interface Sound {
  readonly world: World;
  readonly ledger: Ledger;
  readonly journals: Map<SessionUid, SessionEvidence>;
  /** The session whose turn was interrupted by its host's death, within its second model call. */
  readonly resumed: SessionUid;
  readonly child: SessionUid;
}

async function begin(world: World, host: SimHost, session: SessionUid, task: string): Promise<RunningTurn> {
  const row = await world.journal.get(session);
  if (row === undefined) throw new Error("there is no such session");
  const invocation = {
    inputs: [textMessage("user", task)],
    caller: undefined,
    harness: "",
    config: new Uint8Array([1]),
    resumeFromSeq: 0n,
    expectedLastSeq: undefined,
    deadlineMs: undefined,
  };
  const turn = await host.controller.begin(session, await host.controller.plan(row, invocation));
  world.follow(turn, host);
  return turn;
}

async function newSession(world: World, host: SimHost, harness: string): Promise<SessionUid> {
  const uid = world.newSession();
  await host.store.create({ ...emptySeed(uid, world.time.clock.nowMs()), harness });
  return uid;
}

/** Makes a sound world on the journal that `openJournal` opens. */
export async function soundWorld(openJournal: WorldOptions["openJournal"]): Promise<Sound> {
  const world = await World.open({ seed: 1, openJournal });
  world.weather.isCalm = true;
  const [first, second] = [world.startHost(), world.startHost()];
  const resumed = await newSession(world, first, "sleeper");
  await begin(world, first, resumed, "c2 w100");
  await world.time.elapse(500);
  world.kill(first);
  await world.time.elapse(30_000);
  const worked = await newSession(world, second, "worker");
  await begin(world, second, worked, "c1 o1 t1");
  await world.time.elapse(5_000);
  const read = await newSession(world, second, "historian");
  for (const task of ["c1", "c1"]) {
    await begin(world, second, read, task);
    await world.time.elapse(5_000);
  }
  const children = () => [{ ...emptySeed(world.newSession(), world.time.clock.nowMs()), harness: "worker" }];
  const [row] = await second.controller.fork({ parent: worked, atSeq: 3 as Seq, children });
  if (row === undefined) throw new Error("the session was not forked");
  await makePeace(world);
  return { world, ledger: world.ledger, journals: new Map(world.monitor.sessions), resumed, child: row.seed.uid };
}
