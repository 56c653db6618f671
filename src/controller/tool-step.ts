/**
 * What becomes of a tool call: whether it runs, waits for a decision, or is answered without running.
 *
 * Invariants:
 * - An idempotency key of a session names one effect. Whoever asks under it again, with the same tool and arguments, gets what came of
 *   it; only a tool that is idempotent is ever run again (I3).
 * - A call that may have begun and whose outcome is not known is answered so. Nobody guesses.
 */

import { clone, create, equals } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import type { ExecutionId } from "../base/ids.ts";
import { PartSchema, ToolCallSchema, ToolResult_Code, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { Receipt, ReceiptState } from "../journal/index.ts";
import {
  hostFailure,
  Mediation,
  unknownOutcome,
  type ApprovalResult,
  type ApprovalSeqs,
  type IdentityRef,
  type ToolCall,
  type ToolResult,
} from "../spi/index.ts";
import type { HostTools } from "./host-tools.ts";
import type { RecordedApproval } from "./recorded-turn.ts";
import { safeName } from "./safe-name.ts";

/** What is to happen with a call. */
export type ToolStep =
  | { readonly kind: "run"; readonly approval?: ApprovalSeqs | undefined }
  /** `why` is the request's reason, where it is not that the call asks for a decision. */
  | { readonly kind: "park"; readonly why?: string | undefined }
  /**
   * The result is known without running anything; `state` is what the receipt says then, undefined leaves it as it is. `actor` is whose
   * result it is, where that is not the session's principal.
   */
  | {
      readonly kind: "answer";
      readonly result: ToolResult;
      readonly state?: ReceiptState | undefined;
      readonly actor?: IdentityRef | undefined;
    };

/** A call that is new, or was recorded and has no result. */
export interface OpenCall {
  readonly call: ToolCall;
  /** A new call certainly has not begun. */
  readonly isNew: boolean;
  readonly approval: RecordedApproval | undefined;
  /** The one under its key. */
  readonly receipt: Receipt | undefined;
}

/** Decides about a call by what is recorded of it and by the receipt under its key, which is of the same effect. */
export async function toolStep(open: OpenCall, tools: HostTools): Promise<ToolStep> {
  const { call, isNew, approval, receipt } = open;
  const known = receipt === undefined ? undefined : await knownResult(call, receipt, tools);
  if (known !== undefined) return { kind: "answer", result: known };
  const mayHaveBegun = receipt === undefined ? !isNew : receipt.state !== "intended";
  return call.mediation === Mediation.REQUIRES_APPROVAL
    ? gatedStep(call, { isNew, approval, mayHaveBegun }, tools)
    : freeStep(call, { mayHaveBegun, approval: undefined }, tools);
}

/** A call that needs a decision. One that was recorded and is not decided has not begun, whatever is said of its key. */
function gatedStep(
  call: ToolCall,
  facts: { readonly isNew: boolean; readonly approval: RecordedApproval | undefined; readonly mayHaveBegun: boolean },
  tools: HostTools,
): ToolStep {
  const { isNew, approval, mayHaveBegun } = facts;
  if (approval?.decision === undefined) {
    return isNew && mayHaveBegun && !isIdempotent(call, tools) ? unknownStep(call, undefined) : { kind: "park" };
  }
  const seqs = seqsOf(approval.requestSeq, approval.decision.seq);
  if (!approval.decision.value.approved)
    return { kind: "answer", result: deniedResult(call.id, approval.decision.value, seqs), state: "finished" };
  return freeStep(call, { mayHaveBegun, approval: seqs }, tools);
}

function freeStep(
  call: ToolCall,
  { mayHaveBegun, approval }: { readonly mayHaveBegun: boolean; readonly approval: ApprovalSeqs | undefined },
  tools: HostTools,
): ToolStep {
  return mayHaveBegun && !isIdempotent(call, tools) ? unknownStep(call, approval) : { kind: "run", approval };
}

function unknownStep(call: ToolCall, approval: ApprovalSeqs | undefined): ToolStep {
  const why = "the host stopped while the tool ran, so whether it took effect is not known; it is not run again";
  return { kind: "answer", result: unknownOutcome(call.id, why, approval), state: "unknown" };
}

function isIdempotent({ tool }: ToolCall, { executor }: HostTools): boolean {
  const found = executor?.find(tool);
  if (found === undefined) throw unservedTool(tool);
  return found.idempotent;
}

/** What a turn knows of a key without looking it up. */
export interface KnownOfKey {
  /** The call of the turn that acts under it. */
  readonly acting: ToolCall | undefined;
  /** Set for a turn that has just been given its id: a key that begins with it was nobody's before. */
  readonly freshId: ExecutionId | undefined;
}

/** The receipt under a new call's key, where no call of its own turn acts under that. Throws for a key that was used for another effect. */
export async function receiptFor(call: ToolCall, { acting, freshId }: KnownOfKey, tools: HostTools): Promise<Receipt | undefined> {
  const key = call.idempotencyKey;
  if (acting === undefined && freshId !== undefined && key.startsWith(freshId)) return undefined;
  const receipt = acting === undefined ? await tools.receipt(key) : undefined;
  const earlier = acting ?? (receipt && (await tools.callOf(receipt)));
  if (earlier !== undefined && !isSameEffect(earlier, call)) throw otherEffectError();
  return receipt;
}

/** Whether two calls ask for the same of the same tool. */
function isSameEffect(left: ToolCall, right: ToolCall): boolean {
  if (left.tool !== right.tool) return false;
  return equals(ToolCallSchema, create(ToolCallSchema, { args: left.args ?? {} }), create(ToolCallSchema, { args: right.args ?? {} }));
}

/** What a key gets that was used for something else. */
function otherEffectError(): HoldfastError {
  return invalidArgument("idempotency_key", "was used in this session for another tool or other arguments; a new effect needs a new key");
}

/** The result that a receipt already knows, for a call under its key. */
async function knownResult(call: ToolCall, receipt: Receipt, tools: HostTools): Promise<ToolResult | undefined> {
  switch (receipt.state) {
    case "finished": {
      const result = receipt.resultSeq === undefined ? undefined : await tools.resultAt(receipt.resultSeq);
      if (result === undefined) throw new HoldfastError("data_loss", "session: the result that a receipt names is not in its journal");
      return resultFor(call.id, result);
    }
    case "done":
      return settledResult(call.id, "done");
    case "failed":
      return settledResult(call.id, "failed");
    case "intended":
    case "started":
    case "unknown":
      return undefined;
  }
}

/** The result of another call under the same key, for this one. */
export function resultFor(id: string, result: ToolResult): ToolResult {
  const copy = clone(ToolResultSchema, result);
  return Object.assign(copy, { id, approvalRequestSeq: 0n, approvalDecisionSeq: 0n });
}

/** What a call gets whose unknown outcome a person has settled. */
export function settledResult(id: string, as: "done" | "failed", approval?: ApprovalSeqs): ToolResult {
  if (as === "failed") {
    const error = "the outcome was unknown; a person has settled that the tool took no effect";
    return hostFailure(id, { code: ToolResult_Code.EXECUTOR_ERROR, error }, approval);
  }
  const text = "the outcome was unknown; a person has settled that the tool took effect. Its output is not known.";
  return create(ToolResultSchema, {
    id,
    content: [create(PartSchema, { part: { case: "text", value: { text } } })],
    approvalRequestSeq: approval?.requestSeq ?? 0n,
    approvalDecisionSeq: approval?.decisionSeq ?? 0n,
  });
}

/** The receipt of a call that was denied: its tool was never run. */
export function deniedResult(id: string, { reason }: Pick<ApprovalResult, "reason">, seqs: ApprovalSeqs): ToolResult {
  const error = reason === "" ? "the call was denied; the tool was not run" : `the call was denied; the tool was not run: ${reason}`;
  return hostFailure(id, { code: ToolResult_Code.APPROVAL_DENIED, error }, seqs);
}

/** The seqs of a request and its decision, as a receipt names them. */
export function seqsOf(requestSeq: number, decisionSeq: number): ApprovalSeqs {
  return { requestSeq: BigInt(requestSeq), decisionSeq: BigInt(decisionSeq) };
}

/** What a call gets whose tool is not here. */
export function unservedTool(tool: string): HoldfastError {
  const name = safeName(tool);
  const what = name === undefined ? "this name" : `the name ${name}`;
  return new HoldfastError("failed_precondition", `tool: no tool of this host has ${what}; start the host with it`);
}
