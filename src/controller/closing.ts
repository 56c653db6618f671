/** What is written for tool calls that have no result when their turn ends. */

import type { Seq } from "../base/ids.ts";
import { ToolResult_Code } from "../gen/agentsessions/v1/common_pb.ts";
import type { NewEvent, Receipt } from "../journal/index.ts";
import { hostFailure, Mediation, unknownOutcome, type ApprovalSeqs, type IdentityRef, type ToolResult } from "../spi/index.ts";
import { approvalResultEvent, toolResultEvent, type EventStamp } from "./events.ts";
import type { HostTools } from "./host-tools.ts";
import type { UnansweredCall } from "./tool-group.ts";
import { deniedResult, seqsOf } from "./tool-step.ts";

/** Events and receipts for the append that ends a turn, to come before its END. */
export interface Closing {
  readonly events: readonly NewEvent[];
  readonly receipts: readonly Receipt[];
}

/** What a closing needs to know of its turn. */
export interface ClosingContext {
  readonly stamp: EventStamp;
  readonly tools: HostTools;
  readonly actor: IdentityRef | undefined;
  /** The seq that the append extends. */
  readonly afterSeq: () => Seq;
  /** Why the turn ends, as in "was cancelled". */
  readonly why: string;
}

/**
 * Gives every unanswered call a result: a request that nobody decided is denied, what certainly has not begun was not run, and of what
 * may have begun the outcome is unknown. So every call on record has its result, whatever reads it.
 */
export async function closingOf(unanswered: readonly UnansweredCall[], context: ClosingContext): Promise<Closing> {
  // Looking up takes time, in which another result may be recorded: the seqs are worked out afterwards.
  const began = new Map<UnansweredCall, boolean>();
  for (const each of unanswered) began.set(each, await mayHaveBegun(each, context.tools));
  const { stamp, actor } = context;
  const events: NewEvent[] = [];
  const receipts: Receipt[] = [];
  const afterSeq = context.afterSeq();
  const add = (event: NewEvent): Seq => (afterSeq + events.push(event)) as Seq;
  for (const each of unanswered) {
    const { call, seq, approval } = each;
    const seqs = approval === undefined ? undefined : seqsOf(approval.requestSeq, approval.decision?.seq ?? add(denial(each, context)));
    const isUnknown = began.get(each) === true;
    const resultSeq = add(toolResultEvent(stamp, resultOf(each, { isUnknown, seqs, why: context.why }), actor));
    if (isUnknown) receipts.push({ key: call.idempotencyKey, callId: call.id, callSeq: seq, state: "unknown", resultSeq });
  }
  return { events, receipts };
}

function denial({ call, approval }: UnansweredCall, { stamp, actor, why }: ClosingContext): NewEvent {
  const requestSeq = approval?.requestSeq ?? (0 as Seq);
  return approvalResultEvent(stamp, { toolCallId: call.id, requestSeq, approved: false, reason: `the turn ${why}` }, actor);
}

function resultOf(
  { call, approval }: UnansweredCall,
  { isUnknown, seqs, why }: { readonly isUnknown: boolean; readonly seqs: ApprovalSeqs | undefined; readonly why: string },
): ToolResult {
  if (isUnknown) return unknownOutcome(call.id, `the turn ${why} while the tool ran`, seqs);
  const decision = approval?.decision?.value;
  if (seqs !== undefined && decision?.approved !== true) return deniedResult(call.id, decision ?? { reason: `the turn ${why}` }, seqs);
  return hostFailure(call.id, { code: ToolResult_Code.CODE_UNSPECIFIED, error: `the tool was not run: the turn ${why}` }, seqs);
}

/** Whether a call may have taken effect. One that waits for a decision, or was denied, has not. */
async function mayHaveBegun({ call, approval }: UnansweredCall, tools: HostTools): Promise<boolean> {
  if (call.mediation === Mediation.REQUIRES_APPROVAL && approval?.decision?.value.approved !== true) return false;
  const receipt = await tools.receipt(call.idempotencyKey);
  return receipt === undefined || receipt.callId !== call.id || receipt.state !== "intended";
}
