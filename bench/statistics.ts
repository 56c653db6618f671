/** Medians, quantiles and rounds that take turns. */

import type { BenchContext } from "./context.ts";

/** The value below which `share` of the values lie (nearest rank); NaN for none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

/** The middle value; between two, their mean. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length >>> 1;
  if (sorted.length % 2 === 1) return sorted[middle] ?? Number.NaN;
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

/** The lowest and the highest value. */
export function spread(values: readonly number[]): readonly [number, number] {
  return [Math.min(...values), Math.max(...values)];
}

/** What one round gave: how many a second, and the processor time of this process for each, all threads together. */
export interface Figure {
  readonly perSecond: number;
  readonly cpuUs: number;
}

/** Starts when it is made. */
export class Stopwatch {
  readonly #sinceMs = performance.now();
  readonly #cpu = process.cpuUsage();

  /** Milliseconds so far. */
  elapsedMs(): number {
    return performance.now() - this.#sinceMs;
  }

  /** Microseconds of processor time so far. */
  cpuUs(): number {
    const { user, system } = process.cpuUsage(this.#cpu);
    return user + system;
  }

  /** The figure of `count` things that were done since the start. */
  figure(count: number): Figure {
    return { perSecond: (count * 1000) / this.elapsedMs(), cpuUs: this.cpuUs() / count };
  }
}

/** One thing that is measured against others: each call is one round. Round 0 is the warm-up. */
export type Variant = (round: number) => Promise<Figure> | Figure;

/** What the rounds of one variant gave. */
export interface Rounds {
  /** How many a second, round by round. */
  readonly values: readonly number[];
  readonly median: number;
  readonly spread: readonly [number, number];
  /** The median. */
  readonly cpuUs: number;
}

/**
 * Runs `rounds` rounds of every variant, taking turns, so that whatever else the machine does meets all of them alike. Each
 * round begins with another variant. One round of each goes first and is not counted: it warms up code, caches and files.
 */
export async function takeTurns<Name extends string>(
  context: BenchContext,
  label: string,
  rounds: number,
  variants: Readonly<Record<Name, Variant>>,
): Promise<Record<Name, Rounds>> {
  const names = Object.keys(variants) as Name[];
  const figures = new Map<Name, Figure[]>(names.map((name) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (let index = 0; index < names.length; index++) {
      const name = names[(index + round) % names.length]!;
      context.progress(`${label}: round ${round} of ${rounds}, ${name}`);
      context.settle();
      const figure = await variants[name](round);
      if (round > 0) figures.get(name)!.push(figure);
    }
  }
  const entries = names.map((name) => [name, roundsOf(figures.get(name)!)] as const);
  return Object.fromEntries(entries) as Record<Name, Rounds>;
}

function roundsOf(figures: readonly Figure[]): Rounds {
  const values = figures.map(({ perSecond }) => perSecond);
  return { values, median: median(values), spread: spread(values), cpuUs: median(figures.map(({ cpuUs }) => cpuUs)) };
}

/** The median of `of` divided by `baseline`, round by round: noise that met both cancels out. */
export function pairedRatio(of: Rounds, baseline: Rounds): number {
  return median(of.values.map((value, round) => value / baseline.values[round]!));
}
