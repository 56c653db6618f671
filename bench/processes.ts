/**
 * What a harness in a process of its own costs beside its turns: from nothing to its first answer, bare and confined, against a Node that
 * does nothing; what it holds in memory; a pause and going on; and the first answer of a harness that is served elsewhere already.
 */

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fenceOf, sessionUidOf } from "../src/base/index.ts";
import { createProcessRuntime } from "../src/runtimes/process/index.ts";
import { createRemoteRuntime } from "../src/runtimes/remote/index.ts";
import type { Incarnation, Runtime } from "../src/spi/index.ts";
import { bundleProgram } from "../src/testing/harness-programs/bundle.ts";
import { startPeer } from "../src/testing/harness-programs/peer.ts";
import type { BenchContext, Row } from "./context.ts";
import { median, pairedRatio, spread, Stopwatch, takeTurns, type Figure, type Rounds } from "./statistics.ts";
import { PORTS } from "./stores.ts";

const IS_CONFINABLE = spawnSync("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]).status === 0;
const SPEC = { sessionUid: sessionUidOf("bench"), harness: "bench", fence: fenceOf(1) };

/** Measures the `processes` group. */
export async function measureProcesses(context: BenchContext): Promise<Row[]> {
  using bundle = await bundleProgram("program.ts");
  await using peer = await peerOf(bundle.file);
  const command = { command: process.execPath, args: [bundle.file], cwd: bundle.folder, ports: PORTS };
  await using bare = createProcessRuntime(command);
  await using confined = createProcessRuntime({ ...command, confine: true });
  const starts = await takeTurns(context, "starts of a child", context.scale(15, 5), {
    node: () => startOfNode(),
    bare: () => startOf(bare),
    confined: () => (IS_CONFINABLE ? startOf(confined) : startOf(bare)),
    remote: () => startOf(createRemoteRuntime({ address: peer.address, ports: PORTS }), true),
  });
  return [
    rowOf("node that does nothing, from start to exit", starts.node),
    { ...rowOf("child, from start to its first description", starts.bare), ratio: pairedRatio(starts.node, starts.bare) },
    ...(IS_CONFINABLE ? [{ ...rowOf("confined child, the same", starts.confined), ratio: pairedRatio(starts.node, starts.confined) }] : []),
    rowOf("harness elsewhere, from dialling to its first description", starts.remote),
    await pauses(context, bare),
    await memory(context, bare),
  ];
}

async function peerOf(file: string): Promise<{ readonly address: string } & AsyncDisposable> {
  const peer = await startPeer(file, "127.0.0.1:0");
  return { address: peer.address, [Symbol.asyncDispose]: () => peer.kill() };
}

function rowOf(name: string, { median: perSecond, spread: [least, most], cpuUs }: Rounds): Row {
  return { group: "processes", name, value: 1000 / perSecond, unit: "ms", spread: [1000 / most, 1000 / least], cpuUs };
}

async function startOfNode(): Promise<Figure> {
  const watch = new Stopwatch();
  await once(spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }), "exit");
  return watch.figure(1);
}

/** From nothing to a description; what was started is stopped outside of the time. */
async function startOf(runtime: Runtime, disposes = false): Promise<Figure> {
  const watch = new Stopwatch();
  const incarnation = await runtime.create(SPEC);
  await (await runtime.attach(incarnation)).describe();
  const figure = watch.figure(1);
  await runtime.stop(incarnation);
  if (disposes) await runtime[Symbol.asyncDispose]();
  return figure;
}

async function pauses(context: BenchContext, runtime: Runtime): Promise<Row> {
  const incarnation = await runtime.create(SPEC);
  const rounds: number[] = [];
  for (let round = 0; round < context.scale(200, 50); round++) {
    const watch = new Stopwatch();
    await runtime.snapshot(incarnation, "local");
    await (await runtime.attach(incarnation)).describe();
    rounds.push(watch.elapsedMs());
  }
  await runtime.stop(incarnation);
  return { group: "processes", name: "paused, and going on to a description", value: median(rounds), unit: "ms", spread: spread(rounds) };
}

/** What each of several children adds: pages that it shares with the others count in parts. */
async function memory(context: BenchContext, runtime: Runtime): Promise<Row> {
  const children: Incarnation[] = [];
  for (let index = 0; index < context.scale(16, 8); index++) {
    const incarnation = await runtime.create(SPEC);
    await (await runtime.attach(incarnation)).describe();
    children.push(incarnation);
  }
  const sizes = children.map(({ worker }) => proportionalMiB(Number(worker)));
  await Promise.all(children.map((incarnation) => runtime.stop(incarnation)));
  return {
    group: "processes",
    name: "memory of an idle child",
    value: median(sizes),
    unit: "MiB",
    spread: spread(sizes),
    note: "PSS, Linux",
  };
}

function proportionalMiB(pid: number): number {
  const [, kib = "NaN"] = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8")) ?? [];
  return Number(kib) / 1024;
}
