/** What the turns of a run do: which tools they call, in which rounds. Everything follows from the seed, and every call has a mark of its own. */

import type { SeededRandom } from "../../../src/testing/ports.ts";

/** What is promised of a tool's effects. */
export interface ToolKind {
  /** An idempotent tool's effect happens exactly once; any other's at most once. */
  readonly idempotent: boolean;
  /** Whether a person is asked before each call. */
  readonly gated: boolean;
}

/** The tools by the names under which they are offered: functions of the server's process, and those of an MCP server. */
export const TOOLS = {
  once: { idempotent: true, gated: false },
  always: { idempotent: false, gated: false },
  asked: { idempotent: false, gated: true },
  ledger__once: { idempotent: true, gated: false },
  ledger__always: { idempotent: false, gated: false },
} as const satisfies Readonly<Record<string, ToolKind>>;

export type ToolName = keyof typeof TOOLS;

/** One turn: rounds of calls, those of a round at once. It is the turn's input, as JSON. */
export interface TurnPlan {
  /** Unique in a run. */
  readonly turn: string;
  readonly rounds: readonly (readonly ToolName[])[];
}

const CALLS_MAX = 3;
const FREE = ["once", "always", "ledger__once", "ledger__always"] as const;

/** A turn of one or two rounds with one to three calls each; one in twenty asks a person in the end. */
export function planTurn(turn: string, random: SeededRandom): TurnPlan {
  const rounds: ToolName[][] = Array.from({ length: random.below(3) === 0 ? 2 : 1 }, () =>
    Array.from({ length: 1 + random.below(CALLS_MAX) }, () => FREE[random.below(FREE.length)] ?? "once"),
  );
  if (random.below(20) === 0) rounds.push(["asked"]);
  return { turn, rounds };
}

/** The mark of a call: its id, and the argument by which its effect is found again in a ledger. */
export function markOf({ turn }: TurnPlan, round: number, index: number): string {
  return `${turn}.${round}.${index}`;
}
