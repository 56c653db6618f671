/** What a guest may use. Each bound is tested at its edge; docs/runtimes.md says what happens beyond. */

import { invalidArgument } from "../../base/index.ts";

/** The bounds of one VM. */
export interface QuickJsLimits {
  /** The guest's heap, in bytes. Default 64 MiB. */
  readonly memoryBytes: number;
  /** The guest's stack, in bytes; at most 512 KiB. Default 256 KiB. */
  readonly stackBytes: number;
  /** Processor time from one delivery until the guest waits again, in milliseconds. Default 250. */
  readonly sliceCpuMs: number;
  /** Processor time of one turn, or between two turns, in milliseconds. Default 5000. */
  readonly turnCpuMs: number;
  /** One frame as JSON, either way, in UTF-16 code units. Default 4 Mi. */
  readonly frameChars: number;
  /** How deep arrays and objects of a frame may be nested. Default 100. */
  readonly frameDepth: number;
  /** Frames that the guest sent and the host has not taken yet. Default 256. */
  readonly framesOutstanding: number;
  /** The same in UTF-16 code units, all together. Default 8 Mi. */
  readonly frameCharsOutstanding: number;
  /** Timers that wait. Default 1000. */
  readonly timers: number;
  /** What is kept of the guest's console for each delivery, in UTF-16 code units. Default 16 Ki. */
  readonly consoleChars: number;
}

/** The bounds unless others are given. */
export const QUICKJS_LIMITS: QuickJsLimits = {
  memoryBytes: 64 * 2 ** 20,
  stackBytes: 256 * 2 ** 10,
  sliceCpuMs: 250,
  turnCpuMs: 5000,
  frameChars: 4 * 2 ** 20,
  frameDepth: 100,
  framesOutstanding: 256,
  frameCharsOutstanding: 8 * 2 ** 20,
  timers: 1000,
  consoleChars: 16 * 2 ** 10,
};

/** What each bound may be. A page of WebAssembly memory is 64 KiB, and a VM does not boot in less than a few. */
const RANGES: Readonly<Record<keyof QuickJsLimits, readonly [least: number, most: number]>> = {
  memoryBytes: [2 ** 20, 2 ** 30],
  stackBytes: [32 * 2 ** 10, 512 * 2 ** 10],
  sliceCpuMs: [1, 60_000],
  turnCpuMs: [1, 3_600_000],
  frameChars: [2 ** 10, 64 * 2 ** 20],
  frameDepth: [16, 1000],
  framesOutstanding: [2, 2 ** 16],
  frameCharsOutstanding: [2 ** 10, 256 * 2 ** 20],
  timers: [0, 2 ** 16],
  consoleChars: [0, 2 ** 20],
};

/** The bounds with defaults filled in. Throws INVALID_ARGUMENT that names a bound which is out of its range. */
export function quickJsLimits(given: Partial<QuickJsLimits> = {}): QuickJsLimits {
  const limits = { ...QUICKJS_LIMITS, ...given };
  for (const name of Object.keys(RANGES) as (keyof QuickJsLimits)[]) {
    const [least, most] = RANGES[name];
    const value = limits[name];
    if (!Number.isInteger(value) || value < least || value > most) {
      throw invalidArgument(`limits.${name}`, `must be a whole number from ${least} to ${most}`);
    }
  }
  if (limits.frameCharsOutstanding < limits.frameChars) {
    throw invalidArgument("limits.frameCharsOutstanding", "must be at least limits.frameChars: one frame has to fit");
  }
  return limits;
}
