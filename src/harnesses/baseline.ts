/**
 * From where on a model is sent the conversation as it was said. What stands before that is sent shorter, or as a summary; the journal keeps
 * it all. Places are counted in entries: the messages of the conversation without the results, which go with the calls that they answer.
 */

/** Which entries are sent shorter. */
export interface Baseline {
  /** Observations in entries before this one are sent as a short note. */
  readonly observations: number;
  /** The results of calls in entries before this one are sent as a short note. */
  readonly results: number;
  /** Reasoning in entries before this one is left out. */
  readonly reasoning: number;
  /** Entries before this one are sent as a summary. */
  readonly summary: number;
  /** Of those, what the system said in this entry or a later one is sent as it was said, behind the summary. */
  readonly system: number;
}

/** Everything is sent as it was said. */
export const NO_BASELINE: Baseline = { observations: 0, results: 0, reasoning: 0, summary: 0, system: 0 };

/** The account of a baseline, as LIFECYCLE BASELINE records it. What it says nothing special of is left out. */
export function accountOf({ observations, results, reasoning, summary, system }: Baseline): string {
  return JSON.stringify({
    ...(observations === 0 ? {} : { observations }),
    results,
    reasoning,
    summary,
    ...(system === summary ? {} : { system }),
  });
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
  const { observations = 0, results, reasoning, summary, system = summary } = value as Readonly<Record<string, unknown>>;
  if (!isCount(observations) || !isCount(results) || !isCount(reasoning) || !isCount(summary) || !isCount(system)) return undefined;
  return { observations, results, reasoning, summary, system };
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
