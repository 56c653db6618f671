/**
 * A bound in time on one entry into the engine, from outside of it. Some of the engine's own operations on large values never look at its
 * interrupt handler: an entry that takes too long is unwound by V8 itself, and costs its own VM and nobody else's.
 */

import { Script } from "node:vm";
import { workerData } from "node:worker_threads";
import type { WorkerStart } from "./messages.ts";

/** Time is not processor time: a thread that shares its processor gets a part of it, one of low priority a small part. */
const TIME_FOR_CPU = 8;
const TIME_FOR_CPU_LOW_PRIORITY = 32;
const LEAST_MS = 1000;

const NAME = "holdfastEntry";
const entry = new Script(`${NAME}()`, { filename: "entry" });

/** Runs `work`; false where it was unwound, because it took several times as long as `cpuLeftMs` of processor time should. */
export function ranInTime(work: () => void, cpuLeftMs: number): boolean {
  const { isLowPriority } = workerData as WorkerStart;
  const timeout = Math.max(LEAST_MS, Math.ceil(cpuLeftMs * (isLowPriority ? TIME_FOR_CPU_LOW_PRIORITY : TIME_FOR_CPU)));
  Reflect.set(globalThis, NAME, work);
  try {
    entry.runInThisContext({ timeout });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return false;
    throw error;
  } finally {
    Reflect.deleteProperty(globalThis, NAME);
  }
}
