/**
 * The end of a world: the weather clears, and everything must come to rest. What was interrupted goes on to its end (or may not, for a
 * reason that the contract names), every session takes a next turn, and every ended turn replays.
 */

import { HoldfastError, type SessionUid } from "../../base/index.ts";
import {
  approvalRefOf,
  DivergenceError,
  ownApprovals,
  replaySession,
  type TurnOutcome,
  type WatchRequest,
} from "../../controller/index.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { SessionRow } from "../../journal/index.ts";
import { textMessage } from "../../spi/index.ts";
import { harnessCatalog } from "../host.ts";
import { observedHarnesses, violation, type SeenStream } from "../invariants.ts";
import { completionOf } from "../invariants/session-evidence.ts";
import { DIVERGENT, simulatedHarnesses } from "./harness-shapes.ts";
import type { SimHost } from "./sim-host.ts";
import type { World } from "./world.ts";

/** Long enough for every lease to run out and every late call to arrive. */
const CALM_MS = 120_000;

/** Brings a world to rest and judges what that shows. */
export async function makePeace(world: World): Promise<void> {
  world.note("the weather clears");
  world.weather.isCalm = true;
  // Half of the worlds keep their hosts: what is stuck in one that lives must come loose as well.
  if (world.dice.chance(500)) world.killAll();
  await world.time.elapse(CALM_MS);
  world.killAll();
  await world.time.elapse(CALM_MS);
  await world.judge();
  const hosts = { "1": world.startHost("1"), "2": world.startHost("2") };
  const settled = world.sessions.length;
  await promised(world, () => Promise.all([hosts["1"].looked, hosts["2"].looked]).then(() => undefined));
  for (const session of world.sessions) await settleSession(world, session, hosts);
  // What was spawned goes on with its spawner, and is a session like any other.
  await world.findSpawned();
  for (const session of world.sessions.slice(settled)) await settleSession(world, session, hosts);
  await world.judge();
  for (const session of world.sessions) await replay(world, session);
  await world.judge();
  await world.monitor.rereadAll();
}

type Hosts = Readonly<Record<"1" | "2", SimHost>>;

async function settleSession(world: World, session: SessionUid, hosts: Hosts): Promise<void> {
  const row = await world.journal.get(session);
  if (row === undefined || row.projection.deletionState !== DeletionState.DELETION_ACTIVE) return;
  const finished = async (): Promise<string | undefined> => {
    await finishTurn(world, row, hosts);
    return nextTurn(world, session, hosts["1"]);
  };
  const fault = await promised(world, finished, async () => {
    for (const worker of await world.findSpawned()) await decideAll(world, worker, hosts["1"]);
  });
  if (fault !== undefined) world.ledger.found.push(violation("progress", { session, seq: row.projection.lastSeq }, fault));
}

/** What `work` resolves with, or what it threw in words, while time goes on; `meanwhile` is done each second. */
async function promised(
  world: World,
  work: () => Promise<string | undefined>,
  meanwhile: () => Promise<void> = async () => undefined,
): Promise<string | undefined> {
  let outcome: { readonly fault: string | undefined } | undefined;
  void work().then(
    (fault) => (outcome = { fault }),
    (error: unknown) => (outcome = { fault: String(error) }),
  );
  for (let waited = 0; waited < 100; waited++) {
    await world.time.settle();
    if (outcome !== undefined) return outcome.fault;
    await meanwhile();
    await world.time.elapse(1_000);
  }
  return "it takes for ever";
}

/** Takes the open turn up and sees it to its end. Throws what is no reason for it to stay open. */
async function finishTurn(world: World, row: SessionRow, hosts: Hosts): Promise<void> {
  const { openTurn } = row.projection;
  if (openTurn === undefined) return;
  const session = row.seed.uid;
  await world.monitor.refresh(session);
  const version = world.isStuck(session, "1") ? "2" : "1";
  const stuck = world.isStuck(session, version) || world.hasInheritedCall(session);
  try {
    if (!stuck) await decideAll(world, session, hosts[version]);
    const { turn } = await hosts[version].controller.resume(session, undefined);
    if (turn === undefined) throw new Error("resume found nothing to resume");
    if (stuck) throw new Error("resume took up a turn that may not go on");
    world.follow(turn, hosts[version]);
    world.count("recovery");
    const outcome = await turn.outcome;
    if (outcome.kind === "ended" && outcome.state !== "CANCELED") return;
    // A turn may ask again.
    if (outcome.kind === "parked") return await finishTurn(world, (await world.journal.get(session)) ?? row, hosts);
    if (await failsForGood(world, session, outcome)) return;
    throw new Error(
      outcome.kind === "interrupted" ? `its turn is interrupted again: ${outcome.error.message}` : `its turn is ${outcome.kind}`,
    );
  } catch (error) {
    if (stuck && error instanceof HoldfastError && error.code === "failed_precondition") return;
    throw error;
  }
}

/** Decides everything that the session waits for, one way or the other. */
async function decideAll(world: World, session: SessionUid, host: SimHost): Promise<void> {
  const row = await world.journal.get(session);
  for (const approval of row === undefined ? [] : ownApprovals(row)) {
    if (row === undefined || approval.decision !== undefined) continue;
    const ref = approvalRefOf(row, approval);
    await host.controller.approve({ session, ref, approved: world.dice.chance(700), reason: "peace", actor: undefined });
    world.count("decided in peace");
  }
}

/**
 * A harness that lets the recorded failure of a model call pass does so each time, and one that never asks for the same twice diverges
 * each time: their turns stay open until somebody cancels them.
 */
async function failsForGood(world: World, session: SessionUid, outcome: TurnOutcome): Promise<boolean> {
  if (outcome.kind !== "interrupted") return false;
  await world.monitor.refresh(session);
  const evidence = world.of(session);
  const start = evidence.projections.at(-1)?.openTurn?.startSeq ?? 0;
  if (outcome.error instanceof DivergenceError) return DIVERGENT[world.harnessOf(session, start)] !== undefined;
  const call = evidence.records.slice(start).findLast(({ event }) => event.body.case === "model");
  const completion = call === undefined ? undefined : completionOf(evidence, call.seq);
  return completion?.event.body.case === "error";
}

async function nextTurn(world: World, session: SessionUid, host: SimHost): Promise<string | undefined> {
  const row = await world.journal.get(session);
  if (row === undefined) return "it is gone";
  const invocation = {
    inputs: [textMessage("user", "c1 o1 t1")],
    caller: undefined,
    harness: "worker",
    config: new Uint8Array(),
    resumeFromSeq: 0n,
    expectedLastSeq: row.projection.lastSeq,
    deadlineMs: undefined,
  };
  const turn = await host.controller.begin(session, await host.controller.plan(row, invocation));
  world.follow(turn, host);
  const lastSeq = turn.outcome.then((ended) => ended.lastSeq);
  const [outcome] = await Promise.all([turn.outcome, watchToEnd(world, host, { session, fromSeq: turn.startSeq, until: lastSeq })]);
  return outcome.kind === "ended" && outcome.state === "COMPLETED" ? undefined : `its next turn is ${outcome.kind}`;
}

/** A slow client that is told of a turn to its end; it would wait for ever for a record that it is never told of. */
async function watchToEnd(
  world: World,
  host: SimHost,
  request: Required<Pick<WatchRequest, "session" | "fromSeq" | "until">>,
): Promise<void> {
  const stream: SeenStream = { session: request.session, fromSeq: request.fromSeq, records: [] };
  world.ledger.streams.push(stream);
  for await (const item of host.controller.watch(request)) {
    if (item.kind === "record") stream.records.push({ seq: item.record.seq, contentHash: item.record.contentHash });
    await world.time.clock.sleep(3);
  }
}

async function replay(world: World, session: SessionUid): Promise<void> {
  const row = await world.journal.get(session);
  if (row === undefined || row.keptSeq !== undefined) return;
  const { clock } = world.time;
  const harnesses = observedHarnesses({
    harnesses: harnessCatalog(simulatedHarnesses({ clock, throws: () => false, nonce: () => world.dice.next(), isReplay: true }, "1")),
    ledger: world.ledger,
    monitor: world.monitor,
    digest: world.digest,
    host: "replay",
  });
  const before = world.ledger.calls.length;
  const context = { journal: world.journal, harnesses, ports: { clock, random: world.dice, digest: world.digest } };
  const fault = await promised(world, async () => {
    const checks = await Array.fromAsync(replaySession(context, { row }));
    world.ledger.replays.push({ session, checks, calls: world.ledger.calls.length - before });
    world.count("replayed session");
    return undefined;
  });
  if (fault !== undefined) world.ledger.found.push(violation("I5", { session }, `a replay failed: ${fault}`));
}
