/**
 * The `quickjs` runtime: what captures, restores and forks take, what is stored, what a VM holds, and what a guest that never stops costs its
 * neighbours. Every capture is on the disk before its time is taken.
 */

import { fileURLToPath } from "node:url";
import { fenceOf, sessionUidOf } from "../src/base/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../src/node/index.ts";
import { bundleHarness, createQuickJsRuntime } from "../src/runtimes/quickjs/index.ts";
import { textMessage, type Incarnation, type Runtime, type SnapshotRef } from "../src/spi/index.ts";
import { createMemoryBlobStore, openFileBlobStore } from "../src/stores/blobs/index.ts";
import { firstStart } from "../src/testing/evaluated.ts";
import { forwardingBlobs } from "../src/testing/forwarding-blobs.ts";
import { createRecordingSink } from "../src/testing/recording-sink.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { median, quantile, spread } from "./statistics.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const OPERATIONS = 40;
const MEMORY_ROUNDS = 4;
const MEMORY_WARM_UP = 3;
const CHILDREN = 8;
/** Objects of the large heap: about 7 MB. */
const LARGE = 50_000;

const atMost = (limit: number, of: Target["of"] = "value"): Target => ({ of, bound: "at-most", limit });

/** Measures the `quickjs` group. */
export async function measureQuickJs(context: BenchContext): Promise<Row[]> {
  const rows = [...(await measureCaptures(context)), ...(await measureStored(context)), ...(await measureNeighbours(context))];
  return [...rows, ...(await measureMemory(context))];
}

/** A runtime on files, whose puts are counted. */
class World implements AsyncDisposable {
  readonly runtime: Runtime;
  /** Bytes of each blob that was put. */
  readonly puts: number[];

  private constructor(runtime: Runtime, puts: number[]) {
    this.runtime = runtime;
    this.puts = puts;
  }

  /** `place`: where captures are kept. */
  static async open(context: BenchContext, place: "disk" | "memory" = "disk"): Promise<World> {
    const file = fileURLToPath(new URL("../src/testing/guests/evaluator.ts", import.meta.url));
    const script = await bundleHarness({ file, exportName: "createEvaluator" });
    const inDisk = () => openFileBlobStore({ folder: context.newFolder(), clock: systemClock });
    const kept = place === "disk" ? inDisk() : createMemoryBlobStore({ clock: systemClock });
    const puts: number[] = [];
    const blobs = forwardingBlobs(kept, {
      put: (bytes, options) => {
        puts.push(bytes.length);
        return kept.put(bytes, options);
      },
    });
    const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
    const world = new World(await createQuickJsRuntime({ script, blobs, ports }), puts);
    await world.runtime.describe();
    return world;
  }

  create(session: string): Promise<Incarnation> {
    return this.runtime.create({ ...bound(session), harness: "evaluator" });
  }

  /** One turn, as a host drives it: the harness is attached, described and run. */
  async turn(incarnation: Incarnation, code: string): Promise<string> {
    const harness = await this.runtime.attach(incarnation);
    await harness.describe();
    const sink = createRecordingSink();
    const start = firstStart(incarnation.sessionUid, [textMessage("user", code)]);
    await harness.run(start, sink, { signal: new AbortController().signal });
    const [effect] = sink.effects;
    return effect?.kind === "output" ? effect.text : "";
  }

  async checkpoint(incarnation: Incarnation): Promise<SnapshotRef> {
    const snapshot = await this.runtime.checkpoint?.(incarnation);
    if (snapshot === undefined) throw new Error("the runtime captures nothing");
    return snapshot;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime[Symbol.asyncDispose]();
  }
}

const bound = (session: string) => ({ sessionUid: sessionUidOf(session), fence: fenceOf(1) });

/** The median over rounds of the rounds' medians. */
function rowOf(name: string, unit: string, rounds: readonly (readonly number[])[], more: Partial<Row> = {}): Row {
  const medians = rounds.map((values) => median(values));
  return { group: "quickjs", name, value: median(medians), unit, spread: spread(medians), ...more };
}

async function timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
  const startMs = performance.now();
  const result = await work();
  times.push(performance.now() - startMs);
  return result;
}

type Figures<T> = Record<"turn" | "snapshot" | "bare" | "restore" | "fork", T>;

async function measureCaptures(context: BenchContext): Promise<Row[]> {
  await using world = await World.open(context);
  await using inMemory = await World.open(context, "memory");
  const { runtime } = world;
  const figures: Figures<number[][]> = { turn: [], snapshot: [], bare: [], restore: [], fork: [] };
  let incarnation = await world.create("s");
  const bare = await inMemory.create("s");
  for (let round = 0; round <= context.scale(5, 2); round++) {
    context.progress(`quickjs: captures, round ${round}`);
    context.settle();
    const times: Figures<number[]> = { turn: [], snapshot: [], bare: [], restore: [], fork: [] };
    for (let operation = 0; operation < OPERATIONS; operation++) {
      const said = await timed(times.turn, () => world.turn(incarnation, "globalThis.n = (globalThis.n ?? 0) + 1"));
      if (said !== String(round * OPERATIONS + operation + 1)) throw new Error("a memory was lost");
      await timed(times.snapshot, () => world.checkpoint(incarnation));
      await inMemory.turn(bare, "globalThis.n = (globalThis.n ?? 0) + 1");
      await timed(times.bare, () => inMemory.checkpoint(bare));
      const snapshot = await runtime.snapshot(incarnation, "external");
      incarnation = await timed(times.restore, () => runtime.restore(snapshot, bound("s")));
      if (operation % 4 !== 0) continue;
      const names = Array.from({ length: CHILDREN }, (_, child) => bound(`c-${round}-${operation}-${child}`));
      const children = await timed(times.fork, () => Promise.all(names.map((name) => runtime.fork(snapshot, name))));
      await Promise.all(children.map((child) => runtime.stop(child)));
    }
    if (round > 0) for (const name of ["turn", "snapshot", "bare", "restore", "fork"] as const) figures[name].push(times[name]);
  }
  return [
    rowOf("turn in a VM, p50", "ms", figures.turn, { note: "attached, described, run" }),
    rowOf("snapshot, p50", "ms", figures.snapshot, { target: atMost(3), note: "after a turn; on the disk" }),
    rowOf("snapshot, p50, into memory", "ms", figures.bare, { note: "the same without the disk" }),
    rowOf("restore, p50", "ms", figures.restore, { target: atMost(5) }),
    rowOf(`fork of ${CHILDREN}, p50`, "ms", figures.fork, { target: atMost(40) }),
  ];
}

/** What turns that change little store, of a small heap and of one that an earlier turn made large. */
async function measureStored(context: BenchContext): Promise<Row[]> {
  await using world = await World.open(context);
  const rows: Row[] = [];
  const makeLarge = `globalThis.large = Array.from({ length: ${LARGE} }, (_, i) => ({ i, s: 'item ' + i })); 1`;
  for (const [name, code] of [
    ["small heap", "1"],
    ["heap of 50,000 objects", makeLarge],
  ] as const) {
    const incarnation = await world.create(name);
    await world.turn(incarnation, code);
    await world.checkpoint(incarnation);
    world.puts.length = 0;
    for (let turn = 0; turn < context.scale(100, 40); turn++) {
      context.progress(`quickjs: stored, ${name}, turn ${turn}`);
      await world.turn(incarnation, "globalThis.n = (globalThis.n ?? 0) + 1; globalThis.large?.[77].i");
      await world.checkpoint(incarnation);
    }
    const sizes = world.puts.map((bytes) => bytes / KIB);
    const value = Math.max(...sizes);
    rows.push({
      group: "quickjs",
      name: `stored for a turn, most, ${name}`,
      value,
      unit: "KiB",
      spread: spread(sizes),
      target: atMost(32),
    });
  }
  return rows;
}

/** The turns of others while one guest never stops, against the same turns when all is quiet. */
async function measureNeighbours(context: BenchContext): Promise<Row[]> {
  await using world = await World.open(context);
  const neighbours = await Promise.all(Array.from({ length: 8 }, (_, index) => world.create(`n-${index}`)));
  const rounds = { quiet: [] as number[][], hostile: [] as number[][] };
  for (let round = 0; round <= context.scale(5, 2); round++) {
    for (const mood of round % 2 === 0 ? (["quiet", "hostile"] as const) : (["hostile", "quiet"] as const)) {
      context.progress(`quickjs: neighbours, round ${round}, ${mood}`);
      context.settle();
      const end = new AbortController();
      const hostile = mood === "hostile" ? burn(world, end.signal) : Promise.resolve();
      const times: number[] = [];
      for (let turn = 0; turn < context.scale(800, 200); turn++) {
        await timed(times, () => world.turn(neighbours[turn % neighbours.length]!, "globalThis.n = 1"));
      }
      end.abort();
      await hostile;
      if (round > 0) rounds[mood].push(times);
    }
  }
  const p99 = (all: readonly number[][]) => all.map((times) => quantile(times, 0.99));
  const [quiet, hostile] = [p99(rounds.quiet), p99(rounds.hostile)];
  const ratio = median(hostile.map((value, round) => value / quiet[round]!));
  return [
    { group: "quickjs", name: "turn of a neighbour, p99, quiet", value: median(quiet), unit: "ms", spread: spread(quiet) },
    {
      group: "quickjs",
      name: "turn of a neighbour, p99, beside a hostile guest",
      value: median(hostile),
      unit: "ms",
      spread: spread(hostile),
      ratio,
      target: atMost(2, "ratio"),
      note: "an endless loop, ended and begun again",
    },
  ];
}

/** One session whose every turn is an endless loop. */
async function burn(world: World, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const hostile = await world.create("hostile");
    await world.turn(hostile, "for (;;);").catch(() => undefined);
    await world.runtime.stop(hostile);
  }
}

/** What VMs hold that live, and what is left of them once they are suspended. */
async function measureMemory(context: BenchContext): Promise<Row[]> {
  await using world = await World.open(context);
  const sessions = context.scale(1000, 200);
  const figures = { live: [] as number[], suspended: [] as number[] };
  for (let round = 0; round <= MEMORY_ROUNDS; round++) {
    context.progress(`quickjs: memory, round ${round}`);
    const before = await settledBytes(context);
    const living: Incarnation[] = [];
    for (let index = 0; index < sessions; index++) {
      const incarnation = await world.create(`m-${round}-${index}`);
      await world.turn(incarnation, "globalThis.n = 1");
      await world.checkpoint(incarnation);
      living.push(incarnation);
    }
    const during = await settledBytes(context);
    for (const incarnation of living) await world.runtime.snapshot(incarnation, "external");
    const after = await settledBytes(context);
    // The first rounds fill what allocators keep: it belongs to no session.
    if (round >= MEMORY_WARM_UP) figures.live.push((during - before) / sessions / MIB);
    if (round >= MEMORY_WARM_UP) figures.suspended.push(Math.max(0, after - before) / sessions / KIB);
  }
  return [
    rowOf(
      `memory of a live VM, of ${sessions}`,
      "MiB",
      figures.live.map((value) => [value]),
      { target: atMost(1.5), note: "after a turn and a capture" },
    ),
    rowOf(
      `memory of a suspended session, of ${sessions}`,
      "KiB",
      figures.suspended.map((value) => [value]),
      { target: atMost(32) },
    ),
  ];
}

/** The process's resident memory once garbage was collected, here and in its threads. */
async function settledBytes(context: BenchContext): Promise<number> {
  await systemClock.sleep(800);
  context.settle();
  return process.memoryUsage.rss();
}
