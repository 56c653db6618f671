/** The calls of a group: how they are asked, and what is to become of each. */

import type { Seq } from "../base/ids.ts";
import { normaliseToolResult } from "../canon/index.ts";
import type { ApprovalResult, ToolCall, ToolCallOptions, ToolResult } from "../spi/index.ts";
import type { DecideStep } from "./policy-step.ts";
import type { RecordedApproval, RecordedToolCall } from "./recorded-turn.ts";
import type { SinkContext } from "./sink.ts";
import type { ToolStep } from "./tool-step.ts";

/** A call as a harness asks for it. */
export interface Ask {
  readonly asked: ToolCall;
  readonly options: ToolCallOptions;
  readonly settled: PromiseWithResolvers<ToolResult>;
  /** The harness had gone already. */
  readonly isLate: boolean;
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
  | { readonly kind: "copy"; readonly of: Promise<ToolResult> }
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

/** A result as the harness gets it: its own, to change as it likes, unless it changes nothing. Where it came from is known, unless it was recorded with intents. */
export function givenResult(
  { step }: Begun,
  { seq, value }: NonNullable<RecordedToolCall["result"]>,
  { origins, journal, shares }: Pick<SinkContext, "origins" | "journal" | "shares">,
): ToolResult {
  const given = shares() && Object.isFrozen(value) ? value : normaliseToolResult(value);
  if (step.kind !== "answer") origins.note(given, journal.session, seq);
  return given;
}

/** Tells the harness what was decided, before it gets the result. */
export function tellDecision({ ask, decision }: Begun): void {
  if (decision !== undefined) ask.options.onDecision?.(decision);
}
