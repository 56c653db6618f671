/**
 * The crash sweep: a turn of one shape, on a host that dies at its Nth write, for every N until the turn ends first. Then another host
 * opens what is left, and everything must come to rest with every promise kept.
 *
 * A write is what changes the journal: an append, a created session, a fork. At its death the host has asked for all its earlier
 * writes; `before`: this one never reaches the store; `after`: it is durable and the host never learns of it; `torn`: the power fails
 * while it is written.
 */

import type { Clock } from "../../base/index.ts";
import type { EndState, JournalStore } from "../../journal/index.ts";
import { violationsOf, violationText, type SeenAppend } from "../invariants.ts";
import { Dice } from "../dice.ts";
import { GOOD_FATE, type Fate, type Fates } from "../simulator/journal-view.ts";
import { makePeace } from "../simulator/peace.ts";
import { Weather, type ModelMood, type ToolMood } from "../simulator/weather.ts";
import { World } from "../simulator/world.ts";
import { SHAPE_CONFIG, SweepClient, type TurnShape } from "./turn-shapes.ts";
import type { Tear } from "./torn-log.ts";

/** Where a host dies. */
export interface CrashPoint {
  /** The write at which it dies, from 1. */
  readonly write: number;
  readonly when: "before" | "after" | Tear;
}

/** A journal that can be found again after its host's death. */
export interface SweptJournal extends Disposable {
  /** Opens it: empty at first, after `die` what that left. */
  readonly open: (clock: Clock) => Promise<JournalStore>;
  /** Whether it is opened again after a death. A journal in memory stays as it is. */
  readonly survives: boolean;
  /** Called before the write at which the host dies. */
  readonly mark: () => void;
  /** Called when the host is dead and its writes have come to rest. `tear` damages what was written after `mark`. */
  readonly die: (tear: Tear | undefined) => void;
}

/** What came of one crash. */
export interface Crash {
  /** False: the turn was over before the host came to its Nth write. */
  readonly died: boolean;
  /** Requests to a model for the shape's turns. */
  readonly calls: number;
  /** How the shape's turns ended. */
  readonly ends: readonly EndState[];
}

/** A crash after which a promise is broken. */
export class CrashFailure extends Error {
  override readonly name = "CrashFailure";
}

/** The weather of a sweep: calm, but for the host's death. */
class Deadly extends Weather {
  world: World | undefined;
  died = false;
  readonly #shape: TurnShape;
  readonly #point: CrashPoint | undefined;
  readonly #mark: () => void;
  #writes = 0;
  #throws: boolean;
  #appendsAtDeath = 0;
  #pendingAtDeath: readonly SeenAppend[] = [];

  constructor(shape: TurnShape, point: CrashPoint | undefined, mark: () => void) {
    super(new Dice(1));
    this.#shape = shape;
    this.#point = point;
    this.#mark = mark;
    this.#throws = shape.throws === true;
  }

  override write(kind: Parameters<Fates["write"]>[0]): Fate {
    if (kind === "renew" || this.died || this.isCalm || this.#point === undefined) return GOOD_FATE;
    this.#writes += 1;
    if (this.#writes < this.#point.write) return GOOD_FATE;
    this.#die();
    return { ...GOOD_FATE, arrives: this.#point.when !== "before" };
  }

  #die(): void {
    const { world } = this;
    if (world === undefined) return;
    this.#mark();
    this.died = true;
    this.#appendsAtDeath = world.ledger.appends.length;
    this.#pendingAtDeath = world.ledger.appends.filter(({ answer }) => answer === "pending");
    for (const host of world.hosts) world.kill(host);
  }

  /** The appends whose answers the host did not live to hear. */
  unheard(): readonly SeenAppend[] {
    const later = this.world?.ledger.appends.slice(this.#appendsAtDeath) ?? [];
    return [...this.#pendingAtDeath, ...later];
  }

  override read(): Fate {
    return GOOD_FATE;
  }

  /** The harness throws once: in the first life, at the first place where it may. */
  override throws(): boolean {
    const throws = this.#throws && !this.isCalm;
    this.#throws = false;
    return throws;
  }

  override toolMood(): ToolMood {
    return "quick";
  }

  override mood(): ModelMood {
    return this.isCalm ? "quick" : (this.#shape.mood ?? "quick");
  }
}

/** Long enough in simulated time for any shape. */
const STEPS_MAX = 4_000;
const STEP_MS = 20;

/** Runs a shape to its host's death at `point` (or to its end), finds the journal again, brings everything to rest and judges it. */
export async function crash(shape: TurnShape, point: CrashPoint | undefined, journal: SweptJournal): Promise<Crash> {
  const weather = new Deadly(shape, point, journal.mark);
  const { open: openJournal, survives } = journal;
  const world = await World.open({ seed: 1, openJournal, survives, weather, agents: shape.agents });
  weather.world = world;
  try {
    await live(world, weather, shape);
    if (point !== undefined && weather.died) await findAgain(world, weather, journal, point);
    await makePeace(world);
    const found = [...violationsOf(world.ledger, world.monitor.sessions).map(violationText), ...(shape.judge?.(world) ?? [])];
    if (found.length > 0) throw new CrashFailure(textOf(shape, point, [...found, ...world.trace.last(30)]));
    return { died: weather.died, ...tally(world) };
  } finally {
    await world.close();
  }
}

/** The first life: until the client is done, or the host is dead and the store at rest. */
async function live(world: World, weather: Deadly, shape: TurnShape): Promise<void> {
  const client = new SweepClient(world, world.startHost());
  const drive = shape.drive ?? ((of) => of.exec(["c1"]));
  let isDone = false;
  let fault: { readonly cause: unknown } | undefined;
  void client
    .create(shape.harness)
    .then(() => drive(client))
    .then(
      () => (isDone = true),
      (cause: unknown) => (fault = { cause }),
    );
  for (let step = 0; step < STEPS_MAX && !isDone && !weather.died; step++) {
    await world.time.elapse(STEP_MS);
    if (fault !== undefined && !weather.died) throw new CrashFailure(`${shape.name}: its client failed`, fault);
  }
  await world.time.settle();
  if (!isDone && !weather.died) throw new CrashFailure(`${shape.name}: it takes for ever`);
}

/** Opens the journal as the death left it. What a torn write had said to nobody is as if it had not been asked for yet. */
async function findAgain(world: World, weather: Deadly, journal: SweptJournal, point: CrashPoint): Promise<void> {
  const tear = typeof point.when === "string" ? undefined : point.when;
  journal.die(tear);
  if (tear !== undefined)
    for (const append of weather.unheard()) Object.assign(append, { answer: "pending", records: [], fence: undefined });
  await world.cutPower();
}

/** Requests for the shape's turns, and how these ended. */
function tally(world: World): { readonly calls: number; readonly ends: readonly EndState[] } {
  const turns = new Set<string>();
  const ends: EndState[] = [];
  for (const { records } of world.monitor.sessions.values()) {
    for (const { event } of records) {
      const { body, executionId } = event;
      if (body.case === "executionStart" && Buffer.compare(body.value.config, SHAPE_CONFIG) === 0) turns.add(executionId);
      if (body.case === "end" && turns.has(executionId)) ends.push(body.value.state as EndState);
    }
  }
  return { calls: world.ledger.calls.filter(({ executionId }) => turns.has(executionId)).length, ends };
}

function textOf(shape: TurnShape, point: CrashPoint | undefined, lines: readonly string[]): string {
  const where =
    point === undefined
      ? "unfailed"
      : `at write ${point.write}, ${typeof point.when === "string" ? point.when : `torn: ${point.when.name}`}`;
  return [`${shape.name}, ${where}:`, ...lines.map((line) => `  ${line}`)].join("\n");
}

/** What a sweep came to. */
export interface Sweep {
  /** How many crashes there were. */
  readonly points: number;
  /** The most requests to a model that one of them cost more than an unfailed run. */
  readonly extraCallsMost: number;
}

/** Crashes a shape at every write, in one way, until a run passes unfailed. Throws CrashFailure at the first broken promise. */
export async function sweep(shape: TurnShape, when: CrashPoint["when"], newJournal: () => SweptJournal): Promise<Sweep> {
  const whole = await crashed(shape, undefined, newJournal);
  let extraCallsMost = 0;
  for (let write = 1; ; write++) {
    const point = { write, when };
    const { died, calls, ends } = await crashed(shape, point, newJournal);
    if (!died) return { points: write - 1, extraCallsMost };
    const extraCalls = calls - whole.calls;
    const wrongEnd = ends.find((end) => !shape.ends.includes(end));
    if (wrongEnd !== undefined) throw new CrashFailure(textOf(shape, point, [`a turn ended ${wrongEnd}`]));
    if (extraCalls > (shape.extraCallsMax ?? 1)) throw new CrashFailure(textOf(shape, point, [`it cost ${extraCalls} more model calls`]));
    extraCallsMost = Math.max(extraCallsMost, extraCalls);
  }
}

async function crashed(shape: TurnShape, point: CrashPoint | undefined, newJournal: () => SweptJournal): Promise<Crash> {
  using journal = newJournal();
  return await crash(shape, point, journal);
}
