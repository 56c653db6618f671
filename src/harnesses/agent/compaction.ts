/**
 * When a request has grown too large, and what of it is sent shorter from then on. Pure: decided by sizes alone.
 *
 * Invariants:
 * - Observations go first, the oldest before the others, since a newer one counts; then tool results; then reasoning; then everything old, for
 *   a summary. No more goes than is needed to come down to the target, which lies well under the limit, so that the beginning of a request
 *   stays the same for many turns (a provider's prompt cache lives on that).
 * - The last entries are sent as they are: they are what the model is about to answer. Reasoning since the user's last word stays too, since
 *   some providers want it back within one exchange.
 * - An entry is the unit, and a call's result is part of its entry: no pair is ever split.
 */

import type { Baseline } from "../baseline.ts";
import type { EntrySize } from "./estimate.ts";

/** What compaction comes down to, as a share of the limit. */
const TARGET_SHARE = 0.6;
/** What a summary may take of the target. */
const SUMMARY_SHARE = 0.2;
/** What a summary must gain, as a share of the limit. */
const GAIN_SHARE = 0.1;

/** A request as compaction sees it. */
export interface RequestSizes {
  /** The system prompt and the tools, and what is to come. */
  readonly fixed: number;
  readonly summary: number;
  readonly entries: readonly EntrySize[];
  /** The entry of the user's last word; reasoning after it stays. */
  readonly lastWord: number;
  /** The first of the entries that are sent as they are; of observations among them the last one alone. */
  readonly unseen: number;
  /** What the system said in this entry or a later one is not summarised. */
  readonly system: number;
}

/** The size of the request under a baseline. */
export function requestSize({ fixed, summary, entries }: RequestSizes, baseline: Baseline): number {
  let size = fixed + summary;
  for (let index = Math.min(baseline.system, baseline.summary); index < entries.length; index += 1)
    size += sizeAt(entries[index], index, baseline);
  return size;
}

/** The baseline to go on with, where the request is larger than `limit`; undefined where it is not, or nothing can be gained. */
export function nextBaseline(sizes: RequestSizes, current: Baseline, limit: number): Baseline | undefined {
  const before = requestSize(sizes, current);
  if (before <= limit) return undefined;
  const target = limit * TARGET_SHARE;
  const shorter = withoutOld(sizes, current, { size: before, target });
  const size = requestSize(sizes, shorter);
  const summarised = size > target ? withSummary(sizes, shorter, target) : shorter;
  // A summary is a call of its own; for less it is not worth one.
  const next = size - requestSize(sizes, summarised) >= limit * GAIN_SHARE ? summarised : shorter;
  return requestSize(sizes, next) < before ? next : undefined;
}

/**
 * Without so many old observations, then so many old results, and then so much old reasoning, that the target is met; without all that may
 * go where it cannot be.
 */
function withoutOld(
  { entries, lastWord, unseen }: RequestSizes,
  current: Baseline,
  { size, target }: { size: number; target: number },
): Baseline {
  let left = size;
  let { observations, results, reasoning } = current;
  for (let index = observations; left > target && index < entries.length - 1; index += 1) {
    const entry = entries[index];
    if (entry?.kind !== "observation") continue;
    observations = index + 1;
    if (index >= current.summary) left -= entry.results - entry.notes;
  }
  for (; left > target && results < unseen; results += 1) {
    const entry = entries[results];
    if (results >= current.summary && entry?.kind !== "observation") left -= (entry?.results ?? 0) - (entry?.notes ?? 0);
  }
  for (; left > target && reasoning < Math.min(lastWord, unseen); reasoning += 1) {
    if (reasoning >= current.summary) left -= entries[reasoning]?.reasoning ?? 0;
  }
  return { ...current, observations, results, reasoning };
}

/** With a summary of what is old; the same baseline where that is nothing more than it has. */
function withSummary(sizes: RequestSizes, baseline: Baseline, target: number): Baseline {
  const summary = summaryEnd(sizes, baseline, target);
  if (summary === baseline.summary) return baseline;
  const { observations, results, reasoning } = baseline;
  const system = systemKept(sizes, summary);
  return { observations, results: Math.max(results, summary), reasoning: Math.max(reasoning, summary), summary, system };
}

/** Where a summary ends so that what comes after it leaves room for it; before what is sent as it is where nothing less will do. */
function summaryEnd({ entries, fixed, unseen, system }: RequestSizes, baseline: Baseline, target: number): number {
  const isKept = (entry: EntrySize | undefined, index: number): boolean => entry?.kind === "system" && index >= system;
  const kept = entries.reduce((sum, entry, index) => sum + (isKept(entry, index) ? entry.said : 0), 0);
  let room = target * (1 - SUMMARY_SHARE) - fixed - kept;
  let end = entries.length;
  while (end > baseline.summary) {
    if (!isKept(entries[end - 1], end - 1)) room -= sizeAt(entries[end - 1], end - 1, baseline);
    if (room < 0) break;
    end -= 1;
  }
  return Math.max(baseline.summary, Math.min(end, unseen));
}

/** From where on the system's words are sent beside a summary up to `summary`; that end itself where there are none. */
function systemKept({ entries, system }: RequestSizes, summary: number): number {
  const first = entries.findIndex(({ kind }, index) => index >= system && kind === "system");
  return first < 0 ? summary : Math.min(first, summary);
}

/** What an entry takes in a request. */
export function sizeAt(entry: EntrySize | undefined, index: number, baseline: Baseline): number {
  if (entry === undefined) return 0;
  if (index < baseline.summary) return entry.kind === "system" && index >= baseline.system ? entry.said : 0;
  const notesTo = entry.kind === "observation" ? baseline.observations : baseline.results;
  return entry.said + (index < baseline.reasoning ? 0 : entry.reasoning) + (index < notesTo ? entry.notes : entry.results);
}
