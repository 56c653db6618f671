/**
 * The simulator: a world from a seed, random operations in it, and every promise checked after every step.
 *
 * Invariant: a run is a pure function of its seed and its steps. No real time, no real randomness, nothing that depends on the
 * machine; so a seed that failed fails again.
 */

import { violationsOf, violationText, type Violation } from "../invariants.ts";
import * as clients from "./client-operations.ts";
import type { Dice } from "../dice.ts";
import { DIVERGENT } from "./harness-shapes.ts";
import * as hosts from "./host-operations.ts";
import { makePeace } from "./peace.ts";
import { watch } from "./watch-operations.ts";
import { World, type WorldOptions } from "./world.ts";

/** What is simulated. */
export interface SimulationOptions extends WorldOptions {
  /** Steps before the weather clears. Default: drawn from the seed, 20 to 70. */
  readonly steps?: number | undefined;
  /** The command that runs a seed again, as a failure prints it. */
  readonly replayCommand?: ((seed: number) => string) | undefined;
}

/** What a run was, for comparing and for counting. */
export interface SimulationReport {
  readonly seed: number;
  readonly steps: number;
  /** Of every line of the trace. */
  readonly traceHash: string;
  /** Of the bytes of every record of every session, in the order of creation. */
  readonly journalHash: string;
  readonly sessions: number;
  readonly records: number;
  readonly modelCalls: number;
  /** How often what was done and answered, such as `exec aborted` or `death`. */
  readonly counts: ReadonlyMap<string, number>;
}

/** A broken promise, with all that is needed to see it again. */
export class SimulationFailure extends Error {
  override readonly name = "SimulationFailure";
  readonly seed: number;
  readonly step: number;
  readonly violations: readonly Violation[];

  constructor(world: World, step: number, violations: readonly Violation[], command: string) {
    const shown = violations.slice(0, 8).map((found) => `  ${named(world, violationText(found))}`);
    const more = violations.length > 8 ? [`  … and ${violations.length - 8} more`] : [];
    const last = world.trace.last(40).map((line) => `  ${line}`);
    super(
      [
        `seed ${world.seed} breaks a promise at step ${step}:`,
        ...shown,
        ...more,
        "the last operations:",
        ...last,
        `again: ${command}`,
      ].join("\n"),
    );
    this.seed = world.seed;
    this.step = step;
    this.violations = violations;
  }
}

function named(world: World, text: string): string {
  return world.sessions.reduce((short, session) => short.replaceAll(session, world.nameOf(session)), text);
}

const CLIENT_OPERATIONS: readonly (readonly [weight: number, operation: clients.Operation])[] = [
  [30, clients.exec],
  [14, clients.resume],
  [10, watch],
  [9, clients.cancel],
  [12, clients.approve],
  [9, clients.fork],
  [7, clients.suspend],
  [7, clients.createSession],
  [8, clients.crowd],
  [3, clients.list],
  [4, clients.remove],
];

const EVENTS: readonly (readonly [weight: number, event: hosts.Event])[] = [
  [40, hosts.timePasses],
  [6, hosts.hostStarts],
  [4, hosts.hostDies],
  [3, hosts.hostPauses],
  [2, hosts.hostShutsDown],
  [3, hosts.sweeperRuns],
  [1, hosts.clockIsSet],
  [1, hosts.powerFails],
];

/** Runs one seed. Throws SimulationFailure at the first step that breaks a promise. */
export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const world = await World.open(options);
  try {
    const steps = options.steps ?? world.dice.between(20, 70);
    const command = (options.replayCommand ?? ((seed) => `npm run simulate -- --seed ${seed}`))(options.seed);
    const judge = async (step: number, violations: readonly Violation[]): Promise<void> => {
      if (violations.length > 0) throw new SimulationFailure(world, step, violations, command);
    };
    begin(world);
    for (let step = 1; step <= steps; step++) {
      await takeStep(world);
      await judge(step, world.ledger.found);
    }
    await makePeace(world);
    await judge(steps + 1, violationsOf(world.ledger, world.monitor.sessions, DIVERGENT));
    return reportOf(world, steps);
  } finally {
    await world.close();
  }
}

function begin(world: World): void {
  for (let count = world.dice.between(1, 3); count > 0; count--) world.startHost();
  for (let count = world.dice.between(1, 3); count > 0; count--) clients.createSession(world);
}

/** One step: some clients ask something in the same instant, then something may happen to a host or to time. */
async function takeStep(world: World): Promise<void> {
  const { dice } = world;
  if (world.up.length === 0 && dice.chance(700)) world.startHost();
  for (
    let count = dice.weighted([
      [4, 1],
      [2, 2],
      [1, 4],
    ]);
    count > 0;
    count--
  )
    pick(dice, CLIENT_OPERATIONS)(world);
  await world.time.settle();
  if (dice.chance(800)) await pick(dice, EVENTS)(world);
  await world.time.settle();
  await world.judge();
}

function pick<T>(dice: Dice, items: readonly (readonly [number, T])[]): T {
  return dice.weighted(items);
}

function reportOf(world: World, steps: number): SimulationReport {
  const { monitor, digest, ledger } = world;
  const journals = world.sessions.map((session) => monitor.of(session));
  const hashes = journals.map(({ records }) => digest.sha256Hex(Buffer.concat(records.map(({ bytes }) => bytes))));
  return {
    seed: world.seed,
    steps,
    traceHash: world.trace.hash(digest),
    journalHash: digest.sha256Hex(hashes.join()),
    sessions: journals.filter(({ records }) => records.length > 0).length,
    records: journals.reduce((sum, { records }) => sum + records.length, 0),
    modelCalls: ledger.calls.length,
    counts: world.counts,
  };
}
