/** The controller: the single writer that drives turns. */

export * from "./contract.ts";
export * from "./limits.ts";
export { SPAWNED_BY_ANNOTATION, type BudgetConfig, type BudgetLimits } from "./budgets.ts";
export type { Approval } from "./approve.ts";
export {
  ApprovalSweeps,
  canExpire,
  startExpirer,
  type Expirer,
  type ExpirerOptions,
  type ExpiryPolicy,
  type ExpiryReport,
} from "./approval-expiry.ts";
export { createController } from "./controller.ts";
export { CAPTURE_AGE_MS, sweepCaptures, type CaptureSweepOptions, type CaptureSweepReport } from "./capture-sweep.ts";
export {
  BLOB_SWEEP_INTERVAL_MS,
  startCaptureSweeper,
  startOutputSweeper,
  type CaptureSweeperOptions,
  type OutputSweeperOptions,
} from "./blob-sweeper.ts";
export { type AskedEffect, type Divergence, DivergenceError } from "./divergence.ts";
export type { ForkInvocation } from "./fork.ts";
export type { IdlePolicy } from "./idle.ts";
export { eventAt } from "./host-tools.ts";
export { isGlobOf, isPolicyActor, policyActor, ruleFor, type ApprovalExpiry, type ArgumentTest, type PolicyRule } from "./policy.ts";
export { OUTPUT_AGE_MS, sweepOutputs, type OutputSweepOptions, type OutputSweepReport } from "./output-sweep.ts";
export { PartialText } from "./partial-text.ts";
export type { PartialCompletion, PartialPiece } from "./partials.ts";
export { approvalRefOf, ownApprovals, requestedCall } from "./open-approvals.ts";
export type { Settlement } from "./settle-call.ts";
export type { RecordedCompletion, RecordedEffect } from "./recorded-turn.ts";
export { replaySession, type ReplayContext, type ReplayRequest, type TurnCheck, type TurnCheckOutcome } from "./replay.ts";
export { rebuildRequest, type RebuiltRequest } from "./request-sketch.ts";
export { resumeInterrupted, type StartupOptions, type StartupReport } from "./startup.ts";
export { startSweeper, sweep, sweepIntervalMs, type Sweeper, type SweeperOptions, type SweepOptions, type SweepReport } from "./sweeper.ts";
