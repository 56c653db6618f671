/**
 * From where on a model is sent the conversation as it was said. What stands before that is sent shorter, or as a summary; the journal keeps
 * it all. Places are counted in entries: the messages of the conversation without the results, which go with the calls that they answer.
 */

/** Which entries are sent shorter. Every number only grows. */
export interface Baseline {
  /** The results of calls in entries before this one are sent as a short note. */
  readonly results: number;
  /** Reasoning in entries before this one is left out. */
  readonly reasoning: number;
  /** Entries before this one are sent as a summary. */
  readonly summary: number;
}

/** Everything is sent as it was said. */
export const NO_BASELINE: Baseline = { results: 0, reasoning: 0, summary: 0 };

/** The account of a baseline, as LIFECYCLE BASELINE records it. */
export function accountOf({ results, reasoning, summary }: Baseline): string {
  return JSON.stringify({ results, reasoning, summary });
}

/** The baseline in an account; undefined for what is none. */
export function baselineOf(account: string): Baseline | undefined {
  let value: unknown;
  try {
    value = JSON.parse(account);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { results, reasoning, summary } = value as Readonly<Record<string, unknown>>;
  return isCount(results) && isCount(reasoning) && isCount(summary) ? { results, reasoning, summary } : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
