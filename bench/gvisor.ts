/**
 * The `gvisor` runtime, where runsc runs: a bundled Node harness and the Python one, from nothing to its first description, captured while it
 * goes on, restored, forked; and how large an image of its memory is.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createGvisorRuntime, whyNoGvisor, type GvisorRuntimeOptions } from "../src/runtimes/gvisor/index.ts";
import type { BlobStore, Runtime } from "../src/spi/index.ts";
import { openFileBlobStore } from "../src/stores/blobs/index.ts";
import { forwardingBlobs } from "../src/testing/forwarding-blobs.ts";
import { bundleProgram } from "../src/testing/harness-programs/bundle.ts";
import { bound, count, spec } from "../src/testing/runtime-conformance/fixtures.ts";
import type { BenchContext, Row } from "./context.ts";
import { median, spread, Stopwatch } from "./statistics.ts";
import { PORTS } from "./stores.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PYTHON = join(ROOT, "sdks/python/.venv/bin/python");
const FORKS = 4;
const MIB = 1024 * 1024;

type Program = Pick<GvisorRuntimeOptions, "command" | "args" | "cwd" | "env">;

/** What one round of a program took, in milliseconds, and what it stored. */
interface Round {
  readonly started: number;
  readonly captured: number;
  readonly restored: number;
  readonly forked: number;
  readonly bytes: number;
}

/** Measures the `gvisor` group; no rows where no sandbox can run here. */
export async function measureGvisor(context: BenchContext): Promise<Row[]> {
  const why = await whyNoGvisor({ ports: PORTS, blobs: blobsIn(context.newFolder()) });
  if (why !== undefined) {
    process.stderr.write(`the group gvisor is left out, since ${why}\n`);
    return [];
  }
  using bundle = await bundleProgram("program.ts");
  const node: Program = { command: process.execPath, args: [bundle.file], cwd: bundle.folder };
  const python: Program = {
    command: PYTHON,
    args: [join(ROOT, "examples/python/counter.py")],
    cwd: ROOT,
    env: { PYTHONPATH: join(ROOT, "sdks/python/src") },
  };
  return [...(await rowsOf(context, "Node", node)), ...(existsSync(PYTHON) ? await rowsOf(context, "Python", python) : [])];
}

async function rowsOf(context: BenchContext, name: string, program: Program): Promise<Row[]> {
  const rounds: Round[] = [];
  const last = context.scale(7, 2);
  for (let round = 0; round <= last; round++) {
    context.progress(`gvisor: ${name}, round ${round} of ${last}`);
    const measured = await roundOf(context, program);
    if (round > 0) rounds.push(measured);
  }
  const row = (what: string, unit: string, valueOf: (round: Round) => number): Row => {
    const values = rounds.map(valueOf);
    return { group: "gvisor", name: `${name}: ${what}`, value: median(values), unit, spread: spread(values) };
  };
  return [
    row("from nothing to its first turn", "ms", (round) => round.started),
    row("checkpoint, stored, and back to its next turn", "ms", (round) => round.captured),
    row("restore to its first turn", "ms", (round) => round.restored),
    row(`fork of ${FORKS} to their first turns`, "ms", (round) => round.forked),
    row("image of its memory, stored", "MiB", (round) => round.bytes / MIB),
  ];
}

async function roundOf(context: BenchContext, program: Program): Promise<Round> {
  const stored = counted(blobsIn(context.newFolder()));
  await using runtime = await createGvisorRuntime({ ...program, blobs: stored.blobs, ports: PORTS });
  const start = new Stopwatch();
  const first = await runtime.create(spec("session"));
  await turn(runtime, first, 1);
  const started = start.elapsedMs();
  // The program is read for its digest once in a host's life, which is not what is asked here.
  await checkpoint(runtime, first);
  await turn(runtime, first, 2);
  const [before, capture] = [stored.bytes(), new Stopwatch()];
  const snapshot = await checkpoint(runtime, first);
  await turn(runtime, first, 3);
  const captured = capture.elapsedMs();
  const bytes = stored.bytes() - before;
  await runtime.stop(first);
  const restore = new Stopwatch();
  const again = await runtime.restore(snapshot, bound("session"));
  await turn(runtime, again, 3);
  const restored = restore.elapsedMs();
  await runtime.stop(again);
  const fork = new Stopwatch();
  const names = Array.from({ length: FORKS }, (_, index) => `child-${index}`);
  const children = await Promise.all(names.map((name) => runtime.fork(snapshot, bound(name))));
  await Promise.all(children.map((child) => turn(runtime, child, 3)));
  return { started, captured, restored, forked: fork.elapsedMs(), bytes };
}

async function turn(runtime: Runtime, incarnation: Parameters<Runtime["attach"]>[0], expected: number): Promise<void> {
  const said = await count(runtime, incarnation);
  if (said !== expected) throw new Error(`the counter says ${said} and should say ${expected}`);
}

function checkpoint(runtime: Runtime, incarnation: Parameters<Runtime["attach"]>[0]): Promise<Parameters<Runtime["restore"]>[0]> {
  if (runtime.checkpoint === undefined) throw new Error("the runtime captures nothing");
  return runtime.checkpoint(incarnation);
}

function blobsIn(folder: string): BlobStore {
  return openFileBlobStore({ folder, ...PORTS });
}

/** A store that knows how much was put into it. */
function counted(blobs: BlobStore): { readonly blobs: BlobStore; bytes(): number } {
  let bytes = 0;
  const put: BlobStore["put"] = (data, options) => {
    bytes += data.length;
    return blobs.put(data, options);
  };
  return {
    blobs: forwardingBlobs(blobs, { put }),
    bytes: () => bytes,
  };
}
