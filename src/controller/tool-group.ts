/** The calls of a group: how they are asked, and what is to become of each. */

import { clone, create } from "@bufbuild/protobuf";
import { deeplyFrozen } from "../base/frozen.ts";
import type { Seq } from "../base/ids.ts";
import { normaliseToolResult } from "../canon/index.ts";
import { ApprovalRefSchema, ApprovalResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { ApprovalRef, ApprovalResult, ToolCall, ToolCallOptions, ToolResult } from "../spi/index.ts";
import type { DecideStep } from "./policy-step.ts";
import type { RecordedApproval, RecordedToolCall } from "./recorded-turn.ts";
import type { SinkContext } from "./sink.ts";
import type { ToolStep } from "./tool-step.ts";

/** A call as a harness asks for it. */
export interface Ask {
  readonly asked: ToolCall;
  readonly options: ToolCallOptions;
  readonly settled: PromiseWithResolvers<CameResult>;
  /** The harness had gone already. */
  readonly isLate: boolean;
}

/** What came of a call, as it is recorded: other calls under its key get the same, whatever the harness makes of its own. */
export interface CameResult {
  readonly value: ToolResult;
  /** Where it is recorded; undefined for one that was recorded with intents. */
  readonly seq: Seq | undefined;
}

/** A call of the group that is being begun. */
export interface Begun {
  readonly ask: Ask;
  readonly call: ToolCall;
  /** What is recorded of it; undefined for a new call. */
  readonly recorded: RecordedToolCall | undefined;
  readonly step: BegunStep;
  /** What was decided of it, for the harness to be told. */
  readonly decision?: ApprovalResult | undefined;
}

export type BegunStep =
  | ToolStep
  | DecideStep
  | { readonly kind: "serve"; readonly result: NonNullable<RecordedToolCall["result"]> }
  /** Another call of the turn acts under the same key. */
  | { readonly kind: "copy"; readonly of: Promise<CameResult> }
  /** A replay has come to where the recorded turn was stopped. */
  | { readonly kind: "wait" };

/** A call without a result, as the end of its turn finds it. */
export interface UnansweredCall {
  readonly call: ToolCall;
  readonly seq: Seq;
  readonly approval: RecordedApproval | undefined;
}

/** Where the result of a call that was begun stands; past everything for one that has none. */
export function resultSeqOf({ step }: Begun): number {
  return step.kind === "serve" ? step.result.seq : Number.MAX_SAFE_INTEGER;
}

/** Whether a recorded call needs nothing more than its record. */
export function isServed(step: BegunStep, { approval }: RecordedToolCall): boolean {
  return step.kind === "serve" || step.kind === "wait" || (step.kind === "park" && approval !== undefined);
}

/** Whether something is to be written for a call, or to be run. */
export function isActing({ step }: Begun): boolean {
  return step.kind !== "serve" && step.kind !== "wait";
}

/** A result as the harness gets it: its own, to change as it likes, unless it changes nothing. */
export function givenResult(
  { value, seq }: CameResult,
  { origins, journal, shares }: Pick<SinkContext, "origins" | "journal" | "shares">,
): ToolResult {
  const given = shares() && Object.isFrozen(value) ? value : normaliseToolResult(value);
  if (seq !== undefined) origins.note(given, journal.session, seq);
  return given;
}

/** What a parked call waits for. The harness gets it too, with the error that unwinds it. */
export function parkRef({ executionId }: Pick<SinkContext, "executionId">, call: ToolCall, requestSeq: Seq): ApprovalRef {
  return deeplyFrozen(create(ApprovalRefSchema, { executionId, toolCallId: call.id, requestSeq: BigInt(requestSeq) }));
}

/** Tells the harness what was decided, before it gets the result: a copy, since what becomes of the call goes by the decision on record. */
export function tellDecision({ ask, decision }: Begun): void {
  if (decision !== undefined) ask.options.onDecision?.(clone(ApprovalResultSchema, decision));
}
