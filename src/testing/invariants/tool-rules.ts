/**
 * Tools against the journal: none was run without a durable TOOL_CALL of the session's own and, where it needs one, a durable approval
 * (I7); none that is not idempotent was run twice under one key, none at all for what was recorded (I3); what is recorded is what a tool
 * answered, or says that nobody knows.
 */

import type { SessionUid } from "../../base/index.ts";
import { ToolResult_Code } from "../../gen/agentsessions/v1/common_pb.ts";
import { SPAWN_TOOL } from "../../service/index.ts";
import { isUnknownOutcome } from "../../spi/index.ts";
import type { Ledger, RealToolRun } from "./ledger.ts";
import { toolCallsOf, type SeenToolCall } from "./tool-evidence.ts";
import { violation, type Violation } from "./violation.ts";
import type { Journals } from "./writer-rules.ts";

/** What is wrong with the tools of a whole run. `headOf` is the head that a run of a harness found. */
export function toolViolations(ledger: Ledger, journals: Journals, headOf: (run: RealToolRun) => number | undefined): readonly Violation[] {
  return [
    ...ledger.toolRuns.flatMap((run) => runViolations(run, ledger, journals, headOf)),
    ...repeatedRuns(ledger),
    ...[...journals.values()].flatMap((evidence) => resultViolations(evidence.session, toolCallsOf(evidence), ledger)),
  ];
}

function runViolations(
  run: RealToolRun,
  ledger: Ledger,
  journals: Journals,
  headOf: (run: RealToolRun) => number | undefined,
): readonly Violation[] {
  const { session, callSeq, fence, toolCallId } = run;
  const place = { session, seq: callSeq };
  if (fence === "replay") return [violation("I1", place, "a replay ran a tool")];
  const evidence = journals.get(session);
  if (callSeq === undefined || evidence === undefined) return [violation("I7", place, "a tool was run without a durable TOOL_CALL")];
  const forkSeq = ledger.forks.find(({ children }) => children.includes(session))?.atSeq ?? 0;
  if (callSeq <= forkSeq) return [violation("I3", place, "a fork ran its parent's effect")];
  const seen = toolCallsOf(evidence).find((call) => call.callSeq === callSeq);
  if (seen === undefined || seen.call.id !== toolCallId) return [violation("I7", place, "a tool was run for a call that is not on record")];
  const found: Violation[] = [];
  if (seen.gated && seen.decision?.approved !== true) found.push(violation("I7", place, "a tool was run without its approval"));
  const head = headOf(run);
  if (seen.result !== undefined && head !== undefined && seen.result.seq <= head) {
    found.push(violation("I3", place, "a tool was run again for a result that the run found recorded"));
  }
  return found;
}

/** Under one key of a session a tool that is not idempotent is run once, and no run of a harness runs any tool twice. */
function repeatedRuns(ledger: Ledger): readonly Violation[] {
  const found: Violation[] = [];
  const byKey = Map.groupBy(ledger.toolRuns, ({ session, key }) => `${session} ${key}`);
  for (const runs of byKey.values()) {
    const place = { session: runs[0]!.session, seq: runs[0]!.callSeq };
    if (!runs[0]!.idempotent && runs.length > 1) {
      found.push(violation("I3", place, `a tool that is not idempotent was run ${runs.length} times under one key`));
    }
    if (new Set(runs.map(({ fence, executionId }) => `${fence} ${executionId}`)).size < runs.length) {
      found.push(violation("I3", place, "one run of a harness ran a tool twice under one key"));
    }
  }
  return found;
}

/** What is recorded of a call is what a tool answered under its key, a failure in the host's words, or that nobody knows. */
function resultViolations(session: SessionUid, calls: readonly SeenToolCall[], ledger: Ledger): readonly Violation[] {
  const found: Violation[] = [];
  for (const { call, gated, decision, result } of calls) {
    // What was spawned answers for itself: its own journal is judged.
    if (result === undefined || call.tool === SPAWN_TOOL) continue;
    const place = { session, seq: result.seq };
    const { isError, output, code } = result.value;
    const runs = ledger.toolRuns.filter(({ key, tool }) => key === call.idempotencyKey && tool === call.tool);
    if (!isError && !runs.some(({ nonce }) => output?.["nonce"] === nonce)) {
      found.push(violation("I3", place, "a recorded result is not what a tool answered"));
    }
    if (code === ToolResult_Code.APPROVAL_DENIED && (!gated || decision?.approved !== false)) {
      found.push(violation("turn", place, "a receipt says denied, and nobody has denied"));
    }
    if (isUnknownOutcome(result.value) && gated && decision?.approved !== true) {
      found.push(violation("turn", place, "the outcome of a call that cannot have begun is unknown"));
    }
  }
  return found;
}
