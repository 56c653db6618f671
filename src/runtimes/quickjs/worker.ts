/**
 * A worker thread that holds VMs: one request after the other, so that what a VM does is never interleaved with anything.
 *
 * Invariant: a fault of one VM is the answer of the request that met it. The thread goes on for the others.
 */

import { readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { basename } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import { HoldfastError } from "../../base/index.ts";
import { applyDeltas, mergeDeltas, pageOf } from "./memory-delta.ts";
import type { PackedImage, WorkerAnswers, WorkerCall, WorkerReply, WorkerRequest, WorkerStart } from "./messages.ts";
import { GuestVm, type Base } from "./vm.ts";
import { cpuMs, faultOf } from "./worker-faults.ts";

const { wasm, limits, isLowPriority } = workerData as WorkerStart;
if (isLowPriority) yieldToOthers();
const collectGarbage = garbageCollector();
const bases = new Map<string, Base>();
const vms = new Map<number, GuestVm>();

async function answerTo(request: WorkerRequest): Promise<WorkerAnswers[WorkerRequest["kind"]]> {
  switch (request.kind) {
    case "boot": {
      const guest = await GuestVm.boot(wasm, limits, request.prelude, request.script);
      try {
        return { state: guest.state(), pages: guest.capture(true).finish("thorough") };
      } finally {
        guest.dispose();
      }
    }
    case "base":
      bases.set(request.base, baseOf(request.image));
      return undefined;
    case "load": {
      const base = bases.get(request.base);
      if (base === undefined) throw new HoldfastError("internal", "a base was not sent to its worker");
      const startMs = cpuMs();
      const guest = await GuestVm.load(wasm, limits, { ...request, base });
      guest.nowMs = request.nowMs;
      vms.set(request.vm, guest);
      return { cpuMs: cpuMs() - startMs };
    }
    case "deliver": {
      const slice = vmOf(request.vm).deliver(request.delivery);
      if (slice.fault !== undefined) drop(request.vm);
      return slice;
    }
    case "capture": {
      const startMs = cpuMs();
      const guest = vmOf(request.vm);
      const changed = guest.capture(request.isWhole);
      const delta = changed.finish("small");
      return { memoryBytes: guest.state().memoryBytes, pages: changed.pages, delta, cpuMs: cpuMs() - startMs };
    }
    case "export":
      return vmOf(request.vm).export();
    case "merge":
      return mergeDeltas(request.deltas, request.memoryBytes);
    case "drop":
      drop(request.vm);
      return undefined;
    case "collect":
      collectGarbage();
      return undefined;
  }
}

/** Lowers this thread's priority, not the process's: Linux has one for each thread, and tells a thread its own number. */
function yieldToOthers(): void {
  if (process.platform !== "linux") return;
  try {
    const thread = Number(basename(readlinkSync("/proc/thread-self")));
    if (thread > 0) setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A container may forbid it, or have no /proc. Then the thread is as good as any.
  }
}

/** A base, unpacked once for all VMs that begin with it. */
function baseOf({ state, pages }: PackedImage): Base {
  const memory = new Uint8Array(state.memoryBytes);
  const unpacked = new Map<number, Uint8Array>();
  for (const number of applyDeltas(memory, [pages])) unpacked.set(number, pageOf(memory, number));
  return { state, pages: unpacked };
}

/** The engine hardly feels the memory of a VM that was dropped, and would keep it for as long as the thread has little to do. */
function garbageCollector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

function vmOf(vm: number): GuestVm {
  const guest = vms.get(vm);
  if (guest === undefined) throw new HoldfastError("unavailable", "the sandbox is gone");
  return guest;
}

function drop(vm: number): void {
  vms.get(vm)?.dispose();
  vms.delete(vm);
}

async function reply({ call, request }: WorkerCall): Promise<WorkerReply> {
  try {
    return { call, answer: await answerTo(request) };
  } catch (error) {
    return { call, fault: faultOf(error) };
  }
}

/** What is not copied on its way. */
function handedOver(said: WorkerReply): readonly ArrayBuffer[] {
  if (!("answer" in said) || said.answer === undefined || !("stored" in said.answer)) return [];
  const { bytes, stored } = said.answer;
  return [bytes.buffer, stored.numbers.buffer, stored.bytes.buffer];
}

// Loading is asynchronous, so requests wait for the one before them.
let before: Promise<void> = Promise.resolve();
if (parentPort === null) throw new Error("this is a worker thread's program");
const port = parentPort;
port.on("message", (asked: WorkerCall) => {
  before = before.then(async () => {
    const answer = await reply(asked);
    port.postMessage(answer, handedOver(answer));
  });
});
