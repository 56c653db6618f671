/**
 * When a request has grown too large, and what of it is sent shorter from then on. Pure: decided by sizes alone.
 *
 * Invariants:
 * - Tool results go first, the oldest before the others; then reasoning; then everything old, for a summary. No more goes than is needed to
 *   come down to the target, which lies well under the limit, so that the beginning of a request stays the same for many turns (a
 *   provider's prompt cache lives on that).
 * - The last entry is sent as it is: it is what the model is about to answer. Reasoning since the user's last word stays too, since
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
  /** The system prompt and the tools. */
  readonly fixed: number;
  readonly summary: number;
  readonly entries: readonly EntrySize[];
  /** The entry of the user's last word; reasoning after it stays. */
  readonly lastWord: number;
}

/** The size of the request under a baseline. */
export function requestSize({ fixed, summary, entries }: RequestSizes, baseline: Baseline): number {
  let size = fixed + summary;
  for (let index = baseline.summary; index < entries.length; index += 1) size += sizeAt(entries, index, baseline);
  return size;
}

/** The baseline to go on with, where the request is larger than `limit`; undefined where it is not, or nothing can be gained. */
export function nextBaseline(sizes: RequestSizes, current: Baseline, limit: number): Baseline | undefined {
  const before = requestSize(sizes, current);
  if (before <= limit) return undefined;
  const target = limit * TARGET_SHARE;
  const shorter = withoutOld(sizes, current, { size: before, target });
  const size = requestSize(sizes, shorter);
  const summary = size > target ? summaryEnd(sizes, shorter, target) : shorter.summary;
  const summarised = { results: Math.max(shorter.results, summary), reasoning: Math.max(shorter.reasoning, summary), summary };
  // A summary is a call of its own; for less it is not worth one.
  const next = size - requestSize(sizes, summarised) >= limit * GAIN_SHARE ? summarised : shorter;
  return requestSize(sizes, next) < before ? next : undefined;
}

/** Without so many old results, and then so much old reasoning, that the target is met; without all that may go where it cannot be. */
function withoutOld({ entries, lastWord }: RequestSizes, current: Baseline, { size, target }: { size: number; target: number }): Baseline {
  const last = entries.length - 1;
  let left = size;
  let { results, reasoning } = current;
  for (; left > target && results < last; results += 1) {
    if (results >= current.summary) left -= (entries[results]?.results ?? 0) - (entries[results]?.notes ?? 0);
  }
  for (; left > target && reasoning < Math.min(lastWord, last); reasoning += 1) {
    if (reasoning >= current.summary) left -= entries[reasoning]?.reasoning ?? 0;
  }
  return { ...current, results, reasoning };
}

/** Where a summary ends so that what comes after it leaves room for it; before the last entry where nothing less will do. */
function summaryEnd({ entries, fixed }: RequestSizes, baseline: Baseline, target: number): number {
  let room = target * (1 - SUMMARY_SHARE) - fixed;
  let end = entries.length;
  while (end > baseline.summary) {
    room -= sizeAt(entries, end - 1, baseline);
    if (room < 0) break;
    end -= 1;
  }
  return Math.max(baseline.summary, Math.min(end, entries.length - 1));
}

/** What an entry takes that is not summarised. */
function sizeAt(entries: readonly EntrySize[], index: number, baseline: Baseline): number {
  const entry = entries[index];
  if (entry === undefined) return 0;
  return entry.said + (index < baseline.reasoning ? 0 : entry.reasoning) + (index < baseline.results ? entry.notes : entry.results);
}
