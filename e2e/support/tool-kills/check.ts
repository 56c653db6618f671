/**
 * What must be so after a run, whatever was killed when. Pure: the same evidence gives the same verdict.
 *
 * - Every recorded call has one result. A line of a ledger without a recorded call is an effect before its record (I7).
 * - An idempotent tool's effect is there exactly once, and every run of it was told the same key.
 * - Any other effect is there at most once; exactly once where the result says success. An unknown outcome is said to be unknown, in the record and
 *   in the list of what is unsettled, and no other call is in that list (I3).
 * - A gated call has one decision. Every chain verifies (I5).
 */

import type { LedgerLine, LedgerLines } from "./ledgers.ts";
import { TOOLS, type ToolName } from "./plan.ts";

/** A TOOL_CALL of a journal and what belongs to it. */
export interface RecordedCall {
  readonly session: string;
  readonly mark: string;
  readonly tool: ToolName;
  /** One for each TOOL_RESULT. */
  readonly results: readonly ("success" | "unknown" | "failed")[];
  /** How many decisions the journal has for it. */
  readonly decisions: number;
}

/** What a run left behind. */
export interface Evidence extends LedgerLines {
  readonly calls: readonly RecordedCall[];
  /** The marks of the calls that the host lists as unsettled. */
  readonly unsettled: readonly string[];
  /** Sessions whose chain does not verify. */
  readonly broken: readonly string[];
}

/** What is wrong, one line each; nothing where all is as it must be. */
export function violationsIn(evidence: Evidence): readonly string[] {
  const once = byMark(evidence.once);
  const attempts = byMark(evidence.attempts);
  const always = byMark(evidence.always);
  const marks = new Set(evidence.calls.map(({ mark }) => mark));
  return [
    ...[...Map.groupBy(evidence.calls, ({ mark }) => mark)]
      .filter(([, calls]) => calls.length > 1)
      .map(([mark, calls]) => `${mark}: the call is on record ${calls.length} times`),
    ...evidence.calls.flatMap((call) =>
      TOOLS[call.tool].idempotent
        ? [...idempotentFaults(call, once.get(call.mark) ?? [], attempts.get(call.mark) ?? []), ...alien(call, always)]
        : [...otherFaults(call, always.get(call.mark) ?? []), ...alien(call, once)],
    ),
    ...evidence.calls.flatMap(decisionFaults),
    ...[...evidence.once, ...evidence.attempts, ...evidence.always]
      .filter(({ mark }) => !marks.has(mark))
      .map(({ mark }) => `${mark}: a tool ran for a call that is not on record`),
    ...unsettledFaults(evidence),
    ...evidence.broken.map((session) => `${session}: its chain does not verify`),
  ];
}

function idempotentFaults(call: RecordedCall, once: readonly LedgerLine[], attempts: readonly LedgerLine[]): readonly string[] {
  const keys = new Set([...once, ...attempts].map(({ key }) => key));
  return [
    ...(call.results.length === 1 && call.results[0] === "success" ? [] : [`${call.mark}: an idempotent call came to ${told(call)}`]),
    ...(once.length === 1 ? [] : [`${call.mark}: an idempotent effect is there ${once.length} times`]),
    ...(keys.size <= 1 ? [] : [`${call.mark}: its tool was told ${keys.size} keys`]),
  ];
}

function otherFaults(call: RecordedCall, always: readonly LedgerLine[]): readonly string[] {
  const [result] = call.results;
  return [
    ...(call.results.length === 1 && result !== "failed" ? [] : [`${call.mark}: a call came to ${told(call)}`]),
    ...(always.length <= 1 ? [] : [`${call.mark}: an effect is there ${always.length} times`]),
    ...(result === "success" && always.length === 0 ? [`${call.mark}: its result says success, and there is no effect`] : []),
  ];
}

function decisionFaults({ mark, tool, decisions }: RecordedCall): readonly string[] {
  const due = TOOLS[tool].gated ? 1 : 0;
  return decisions === due ? [] : [`${mark}: it has ${decisions} decisions`];
}

/** A line in the ledger of the other kind of tools. */
function alien({ mark }: RecordedCall, lines: ReadonlyMap<string, readonly LedgerLine[]>): readonly string[] {
  return lines.has(mark) ? [`${mark}: another tool ran than the one on record`] : [];
}

function unsettledFaults({ calls, unsettled }: Evidence): readonly string[] {
  const unknown = new Set(calls.filter(({ results }) => results.includes("unknown")).map(({ mark }) => mark));
  const listed = new Set(unsettled);
  return [
    ...[...unknown].filter((mark) => !listed.has(mark)).map((mark) => `${mark}: its outcome is unknown, and it is not listed as unsettled`),
    ...[...listed].filter((mark) => !unknown.has(mark)).map((mark) => `${mark}: it is listed as unsettled, and its outcome is on record`),
  ];
}

function told({ results }: RecordedCall): string {
  return results.length === 1 ? `"${results[0]}"` : `${results.length} results`;
}

function byMark(lines: readonly LedgerLine[]): ReadonlyMap<string, readonly LedgerLine[]> {
  return Map.groupBy(lines, ({ mark }) => mark);
}
