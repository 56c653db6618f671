/**
 * What a journal says about its session, folded record by record.
 *
 * Invariants:
 * - A projection is a pure function of the records; a store keeps it in the transaction that appends them, and folding the
 *   journal again gives the same value.
 * - Whether anybody is running the turn is not in the journal. It is the lease of the row, and `execStateOf` takes it as an
 *   argument.
 */

import type { ExecutionId, Seq } from "../base/ids.ts";
import { executionIdOf, seqOf, SEQ_NONE } from "../base/ids.ts";
import { EventKind, Lifecycle_Kind, type Event } from "../gen/agentsessions/v1/common_pb.ts";
import { ComputeState, DeletionState, ExecState } from "../gen/agentsessions/v1/session_pb.ts";

/** How a turn ended. */
export type EndState = "COMPLETED" | "FAILED" | "CANCELED";

/** An approval call that has no receipt yet. */
export interface OpenApproval {
  readonly toolCallId: string;
  readonly requestSeq: Seq;
  /** Absent until somebody decided. */
  readonly decision?: { readonly seq: Seq; readonly approved: boolean } | undefined;
}

/** A turn without END. */
export interface OpenTurn {
  /** "" for a journal written without execution ids. */
  readonly executionId: ExecutionId;
  /** The seq of its EXECUTION_START; of its first INPUT in a journal without start markers. */
  readonly startSeq: Seq;
  /** An ERROR is its last word so far. */
  readonly failed: boolean;
  /** Approval calls without a receipt, oldest request first. */
  readonly approvals: readonly OpenApproval[];
}

/** A reference to captured state, as LIFECYCLE SUSPEND recorded it. */
export interface RecordedSnapshot {
  readonly local: string;
  readonly externalUri: string;
  readonly memory: boolean;
  readonly sealed: boolean;
}

/** Everything that is derived from the records alone. */
export interface Projection {
  readonly lastSeq: Seq;
  /** The content hash of the last record; "" before the first. */
  readonly headHash: string;
  readonly openTurn: OpenTurn | undefined;
  /** How the last ended turn ended; undefined before the first END. */
  readonly lastEnd: EndState | undefined;
  readonly computeState: ComputeState;
  /** The session's own latest snapshot; one inherited from a parent is the parent's and is not here. */
  readonly snapshot: RecordedSnapshot | undefined;
  readonly deletionState: DeletionState;
}

/** The projection of an empty journal. */
export const EMPTY_PROJECTION: Projection = {
  lastSeq: SEQ_NONE,
  headHash: "",
  openTurn: undefined,
  lastEnd: undefined,
  computeState: ComputeState.COMPUTE_NONE,
  snapshot: undefined,
  deletionState: DeletionState.DELETION_ACTIVE,
};

/** The projection after one more record. */
export function project(before: Projection, seq: Seq, contentHash: string, event: Event): Projection {
  const moved: Projection = { ...before, lastSeq: seq, headHash: contentHash };
  const { body } = event;
  switch (body.case) {
    case "executionStart":
      return { ...moved, openTurn: openTurn(event, seq) };
    case "message":
      return event.kind === EventKind.EVENT_INPUT ? projectInput(moved, event, seq) : calm(moved);
    case "model":
    case "tool":
    case "usage":
      return calm(moved);
    case "result":
      return withoutApproval(calm(moved), body.value.id);
    case "approval":
      return withApproval(calm(moved), { toolCallId: body.value.toolCallId, requestSeq: seq });
    case "approvalResult":
      return decided(moved, seqOf(body.value.requestSeq), { seq, approved: body.value.approved });
    case "error":
      return moved.openTurn === undefined ? moved : { ...moved, openTurn: { ...moved.openTurn, failed: true } };
    case "end":
      return { ...moved, openTurn: undefined, lastEnd: endStateOf(body.value.state) };
    case "lifecycle":
      return projectLifecycle(moved, body.value);
    case "parked":
    case undefined:
      return moved;
  }
}

function openTurn(event: Event, seq: Seq): OpenTurn {
  return { executionId: executionIdOf(event.executionId), startSeq: seq, failed: false, approvals: [] };
}

/** An INPUT opens a turn only in a journal without start markers; elsewhere it belongs to the open one. */
function projectInput(moved: Projection, event: Event, seq: Seq): Projection {
  if (moved.openTurn !== undefined) return calm(moved);
  return { ...moved, openTurn: openTurn(event, seq) };
}

/** An effect after an ERROR means that the turn was resumed: the error is no longer its last word. */
function calm(moved: Projection): Projection {
  if (moved.openTurn === undefined || !moved.openTurn.failed) return moved;
  return { ...moved, openTurn: { ...moved.openTurn, failed: false } };
}

function withApproval(moved: Projection, approval: OpenApproval): Projection {
  if (moved.openTurn === undefined) return moved;
  return { ...moved, openTurn: { ...moved.openTurn, approvals: [...moved.openTurn.approvals, approval] } };
}

function withoutApproval(moved: Projection, toolCallId: string): Projection {
  const turn = moved.openTurn;
  if (turn === undefined || turn.approvals.length === 0) return moved;
  return { ...moved, openTurn: { ...turn, approvals: turn.approvals.filter((open) => open.toolCallId !== toolCallId) } };
}

function decided(moved: Projection, requestSeq: Seq, decision: { seq: Seq; approved: boolean }): Projection {
  const turn = moved.openTurn;
  if (turn === undefined) return moved;
  const approvals = turn.approvals.map((open) => (open.requestSeq === requestSeq ? { ...open, decision } : open));
  return { ...moved, openTurn: { ...turn, approvals } };
}

/** The end state that END names; a word that the contract does not have counts as FAILED. */
export function endStateOf(state: string): EndState {
  return state === "COMPLETED" || state === "CANCELED" ? state : "FAILED";
}

type LifecycleBody = Extract<Event["body"], { case: "lifecycle" }>["value"];

function projectLifecycle(moved: Projection, lifecycle: LifecycleBody): Projection {
  switch (lifecycle.kind) {
    case Lifecycle_Kind.LIFECYCLE_SUSPEND: {
      const snapshot: RecordedSnapshot = {
        local: lifecycle.snapshotLocal,
        externalUri: lifecycle.snapshotExternalUri,
        memory: lifecycle.snapshotMemory,
        sealed: lifecycle.snapshotSealed,
      };
      return { ...moved, computeState: ComputeState.COMPUTE_COLD, snapshot };
    }
    case Lifecycle_Kind.LIFECYCLE_RESUME:
      return { ...moved, computeState: ComputeState.COMPUTE_LIVE };
    case Lifecycle_Kind.LIFECYCLE_FORK:
      return { ...moved, computeState: ComputeState.COMPUTE_NONE, snapshot: undefined };
    case Lifecycle_Kind.LIFECYCLE_DELETE:
      return {
        ...moved,
        computeState: ComputeState.COMPUTE_TERMINATED,
        deletionState: DeletionState.DELETION_PENDING,
      };
    case Lifecycle_Kind.LIFECYCLE_BASELINE:
    case Lifecycle_Kind.LIFECYCLE_CANCEL:
    case Lifecycle_Kind.LIFECYCLE_UNSPECIFIED:
      return moved;
    default:
      return moved;
  }
}

/** The exec state that a caller is told. `running` says whether somebody holds the session's lease. */
export function execStateOf(projection: Projection, running: boolean): ExecState {
  const turn = projection.openTurn;
  if (turn === undefined) return endedState(projection.lastEnd);
  if (running) return ExecState.EXEC_RUNNING;
  if (turn.approvals.length > 0) return ExecState.EXEC_AWAITING;
  return turn.failed ? ExecState.EXEC_FAILED : ExecState.EXEC_AWAITING;
}

function endedState(lastEnd: EndState | undefined): ExecState {
  switch (lastEnd) {
    case undefined:
      return ExecState.EXEC_PENDING;
    case "COMPLETED":
      return ExecState.EXEC_COMPLETED;
    case "FAILED":
      return ExecState.EXEC_FAILED;
    case "CANCELED":
      return ExecState.EXEC_CANCELED;
  }
}
