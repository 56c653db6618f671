/** What every measurement is given, and what it gives back. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** The groups of measurements, in the order in which they run. */
export const GROUPS = ["append", "verify", "replay", "turns", "agent", "wire", "processes", "quickjs", "gvisor", "door", "long"] as const;
export type Group = (typeof GROUPS)[number];

/** What a figure is held against: its value, or its ratio to the baseline of the same run. */
export interface Target {
  readonly of: "value" | "ratio";
  readonly bound: "at-least" | "at-most";
  readonly limit: number;
}

/** One figure. */
export interface Row {
  readonly group: Group;
  readonly name: string;
  /** The median over the rounds, unless the name says otherwise. */
  readonly value: number;
  readonly unit: string;
  /** The lowest and the highest round. */
  readonly spread?: readonly [number, number] | undefined;
  /** The median over the rounds of this figure divided by its baseline in the same round. */
  readonly ratio?: number | undefined;
  /** Processor time of this process for each, in microseconds; it hardly feels what else the machine does. */
  readonly cpuUs?: number | undefined;
  readonly target?: Target | undefined;
  readonly met?: boolean | undefined;
  /** A word for the reader of the table. */
  readonly note?: string | undefined;
}

/** A measurement: it warms up, measures, cleans up and answers its figures. */
export type Measurement = (context: BenchContext) => Promise<readonly Row[]>;

/** A figure with its verdict where it has a target. */
export function judged(row: Row): Row {
  const { target } = row;
  if (target === undefined) return row;
  const figure = target.of === "ratio" ? row.ratio : row.value;
  const met = figure !== undefined && (target.bound === "at-least" ? figure >= target.limit : figure <= target.limit);
  return { ...row, met };
}

/** What a measurement is given. */
export class BenchContext {
  /** Shorter runs: for a look, not for the record. */
  readonly quick: boolean;
  readonly #parent: string;
  readonly #folders: string[] = [];
  readonly #collectGarbage: () => void;

  constructor(options: { readonly quick: boolean; readonly folder: string | undefined }) {
    this.quick = options.quick;
    this.#parent = options.folder ?? tmpdir();
    setFlagsFromString("--expose-gc");
    this.#collectGarbage = runInNewContext("gc") as () => void;
  }

  /** `full`, or `quick` in a quick run. */
  scale(full: number, quick: number): number {
    return this.quick ? quick : full;
  }

  /** A new, empty folder outside the repository; `cleanUp` removes it. */
  newFolder(): string {
    const folder = mkdtempSync(join(this.#parent, "holdfast-bench-"));
    this.#folders.push(folder);
    return folder;
  }

  /** Removes a folder of this context now: long runs need not keep every file. */
  removeFolder(folder: string): void {
    rmSync(folder, { recursive: true, force: true });
  }

  /** Collects what the last round left, so that the next one does not pay for it. */
  settle(): void {
    this.#collectGarbage();
  }

  /** Says on standard error what is being done. */
  progress(text: string): void {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`);
  }

  /** Removes every folder. */
  cleanUp(): void {
    this.progress("");
    for (const folder of this.#folders.splice(0)) this.removeFolder(folder);
  }
}
