/**
 * What a policy makes of a call that is about to run or to wait for a person.
 *
 * Invariants:
 * - A call's mediation is the harness's to say. One that asks for a decision is decided in its record, request and decision with it. One that
 *   asks for none has no request: what a policy keeps from running is answered with a result of the policy's.
 * - What is on record is not decided anew: a policy is asked about new calls only, so replays and recovery do not depend on it.
 */

import { create } from "@bufbuild/protobuf";
import type { Seq } from "../base/ids.ts";
import { ApprovalResultSchema, ToolResult_Code } from "../gen/agentsessions/v1/common_pb.ts";
import { INBOX_TOOL, Mediation, hostFailure, type IdentityRef, type ToolCall } from "../spi/index.ts";
import type { AppendPage } from "./append-page.ts";
import { approvalRequestEvent, approvalResultEvent, type EventStamp } from "./events.ts";
import { policyActor, ruleFor, ruleReason, type PolicyRule } from "./policy.ts";
import type { RecordedApproval } from "./recorded-turn.ts";
import { deniedResult, seqsOf, type ToolStep } from "./tool-step.ts";

/** A call that asks for a decision and is given one at once. */
export interface DecideStep {
  readonly kind: "decide";
  readonly approved: boolean;
  readonly reason: string;
  readonly actor: IdentityRef;
}

/** The step of a new call after the host's policies. */
export function policedStep(step: ToolStep, call: ToolCall, rules: readonly PolicyRule[]): ToolStep | DecideStep {
  // The inbox is the harness's own way to its callers, and no tool that acts.
  if (rules.length === 0 || step.kind === "answer" || call.tool === INBOX_TOOL) return step;
  const rule = ruleFor(rules, call);
  if (rule === undefined) return step;
  if (call.mediation !== Mediation.REQUIRES_APPROVAL) return rule.do === "allow" ? step : refusedStep(call, rule);
  if (rule.do === "ask") return step.kind === "park" && rule.reason !== "" ? { kind: "park", why: ruleReason(rule) } : step;
  return { kind: "decide", approved: rule.do === "allow", reason: ruleReason(rule), actor: policyActor(rule.name) };
}

/** A call that asks for no decision and may not run without one, or not at all. Its key stays free: nothing took effect under it. */
function refusedStep(call: ToolCall, rule: PolicyRule): ToolStep {
  const why =
    rule.do === "deny"
      ? "the host does not allow the call; the tool was not run"
      : "the host runs this only with a person's approval, and the call does not ask for it; the tool was not run";
  const error = `${why} (${ruleReason(rule)})`;
  return {
    kind: "answer",
    result: hostFailure(call.id, { code: ToolResult_Code.CODE_UNSPECIFIED, error }),
    actor: policyActor(rule.name),
  };
}

/** A request that is decided in its record. */
interface PolicyApproval {
  readonly requestSeq: Seq;
  readonly decision: NonNullable<RecordedApproval["decision"]>;
}

/** Writes a request and its decision down. */
export function recordDecision(
  { approved, reason, actor }: DecideStep,
  call: ToolCall,
  { page, stamp, principal }: { readonly page: AppendPage; readonly stamp: EventStamp; readonly principal: IdentityRef | undefined },
): PolicyApproval {
  const requestSeq = page.add(approvalRequestEvent(stamp, call, principal));
  const value = create(ApprovalResultSchema, { toolCallId: call.id, requestSeq: BigInt(requestSeq), approved, reason });
  const seq = page.add(approvalResultEvent(stamp, { toolCallId: call.id, requestSeq, approved, reason }, actor));
  return { requestSeq, decision: { seq, value } };
}

/** What a decided call does next. */
export function decidedStep(callId: string, { requestSeq, decision }: PolicyApproval): ToolStep {
  const approval = seqsOf(requestSeq, decision.seq);
  if (decision.value.approved) return { kind: "run", approval };
  return { kind: "answer", result: deniedResult(callId, decision.value, approval), state: "finished" };
}
