/** Time and faults as a worker thread sees them. */

import { HoldfastError } from "../../base/index.ts";
import type { Fault } from "./messages.ts";

/** Processor time of this thread, in milliseconds; where Node cannot tell it, time. A thread is given no port: this bounds, and orders nothing. */
export function cpuMs(): number {
  if (typeof process.threadCpuUsage !== "function") {
    // oxlint-disable-next-line no-restricted-properties -- see above.
    return performance.now();
  }
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** What is said of a guest that wanted more memory. */
export const MEMORY_FAULT = "the harness used more memory than it may";

/** The engine's words where it could not get what it needed; the last is what is left where there was no room for an error either. */
const OUT_OF_MEMORY = ["out of memory", "InternalError: string too long", "[uninitialized]"];

/** What was thrown, as a fault that can be sent on. A guest's words go into `detail`, which nobody but the log sees. */
export function faultOf(error: unknown): Fault {
  if (error instanceof HoldfastError) return { code: error.code, message: error.message, detail: textOf(error.cause) };
  const detail = textOf(error);
  if (OUT_OF_MEMORY.some((words) => detail.includes(words))) return { code: "resource_exhausted", message: MEMORY_FAULT, detail };
  if (error instanceof RangeError || detail.includes("call stack size")) {
    return { code: "resource_exhausted", message: "the harness recursed deeper than its stack", detail };
  }
  return { code: "internal", message: "the harness left its sandbox by an exception that it did not catch", detail };
}

const DETAIL_CHARS = 500;

function textOf(error: unknown): string {
  try {
    return (error instanceof Error ? `${error.name}: ${error.message}` : String(error)).slice(0, DETAIL_CHARS);
  } catch {
    return "something that cannot be printed";
  }
}
