/**
 * Checkers of the promises I0 to I8, over the journals of a world and a ledger of what really happened beside them.
 *
 * | promise | what is checked | where |
 * | --- | --- | --- |
 * | I0 | a request is what its MODEL_CALL says; replays do not diverge; nothing happens after a divergence | effects, told |
 * | I1 | a replay asks no model and runs no tool | effects, tools, told |
 * | I2 | a recorded completion is what the model answered, byte for byte | effects |
 * | I3 | what is recorded is not performed again; a run is served what is recorded; a tool that is not idempotent runs once | effects, tools |
 * | I4 | a run starts with its recorded inputs and the whole prefix as history | effects |
 * | I5 | the chain verifies, a prefix is the parent's, a row is what its journal folds to | session evidence |
 * | I6 | fences never go back; an append is taken or refused as it must be, whole or not at all; one writer a fence | writers, admission |
 * | I7 | a MODEL_CALL is durable before its request, a TOOL_CALL and its approval before its tool, a start before its harness | effects, tools |
 * | I8 | what was acknowledged, streamed or told is in the journal | writers, told |
 *
 * They share no code with what they check but the encoding of records, the chain verifier and the fold of projections.
 */

import { effectViolations } from "./invariants/effect-rules.ts";
import type { Ledger } from "./invariants/ledger.ts";
import { toldViolations, type DivergentHarnesses } from "./invariants/told-rules.ts";
import type { Violation } from "./invariants/violation.ts";
import { writerViolations, type Journals } from "./invariants/writer-rules.ts";

export { AdmissionRules } from "./invariants/admission-rules.ts";
export { CountedModel, type ModelScript } from "./invariants/counted-model.ts";
export { CountedTools, type ToolScript } from "./invariants/counted-tools.ts";
export { JournalMonitor } from "./invariants/journal-monitor.ts";
export * from "./invariants/ledger.ts";
export { observedHarnesses } from "./invariants/observed-harness.ts";
export { observedJournal } from "./invariants/observed-journal.ts";
export { SessionEvidence } from "./invariants/session-evidence.ts";
export { streamViolations, type DivergentHarnesses } from "./invariants/told-rules.ts";
export { violation, violationText, type Promised, type Violation } from "./invariants/violation.ts";
export { acknowledgedViolations, type Journals } from "./invariants/writer-rules.ts";

/**
 * Every broken promise of a world that has come to rest: what observers found on the way, and what only the whole shows. `divergent`
 * names harnesses that do something else each time: their turns must not replay.
 */
export function violationsOf(ledger: Ledger, journals: Journals, divergent: DivergentHarnesses = {}): readonly Violation[] {
  return [
    ...ledger.found,
    ...writerViolations(ledger, journals),
    ...effectViolations(ledger, journals),
    ...toldViolations(ledger, journals, divergent),
  ];
}
