/**
 * What a store keeps of one session, and the row that callers are shown.
 *
 * Invariant: a state is never changed, only replaced. A draft may therefore hold states that no transaction has made durable,
 * and dropping the draft undoes them.
 */

import type { Fence, HostId, Seq, SessionUid } from "../base/ids.ts";
import { FENCE_NONE } from "../base/ids.ts";
import { DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import type { ComputeRef } from "../gen/agentsessions/v1/session_pb.ts";
import { EMPTY_PROJECTION, type Projection } from "./projection.ts";
import type { SessionRow, SessionSeed } from "./store.ts";

/** Who runs a session's turn, and until when nobody else may. */
export interface Lease {
  readonly holder: HostId;
  /** By the store's clock, milliseconds since the epoch. */
  readonly untilMs: number;
}

/** Where a forked session's first records are. */
export interface ForkPoint {
  readonly uid: SessionUid;
  /** The parent's key in the same store. */
  readonly key: number;
  readonly forkSeq: Seq;
}

/** A session as a store knows it. */
export interface SessionState {
  /** The store's own short name for the session; no caller sees it. */
  readonly key: number;
  readonly seed: SessionSeed;
  readonly parent: ForkPoint | undefined;
  readonly updateTimeMs: number;
  readonly version: number;
  readonly fence: Fence;
  /** The lease that was last taken and not released. It may have run out. */
  readonly lease: Lease | undefined;
  readonly compute: ComputeRef | undefined;
  readonly projection: Projection;
  /**
   * Set while records 1…keptSeq are all that can be read of the session. At the projection's last seq: an import that is not
   * complete, or the prefix that came with an imported child. Below it: what children still share of a session that was reclaimed.
   */
  readonly keptSeq: Seq | undefined;
}

/** A session that was just created: no record, no writer. */
export function newSessionState(key: number, seed: SessionSeed, nowMs: number): SessionState {
  return {
    key,
    seed,
    parent: undefined,
    updateTimeMs: nowMs,
    version: 1,
    fence: FENCE_NONE,
    lease: undefined,
    compute: undefined,
    projection: EMPTY_PROJECTION,
    keptSeq: undefined,
  };
}

/** The row of a state. A lease that has run out at `nowMs` is not shown; a session that is there in part shows as deleted. */
export function rowOf(state: SessionState, nowMs: number): SessionRow {
  const { seed, parent, updateTimeMs, version, fence, compute, projection, keptSeq } = state;
  return {
    seed,
    parent: parent === undefined ? undefined : { uid: parent.uid, forkSeq: parent.forkSeq },
    updateTimeMs,
    version,
    fence,
    holder: liveHolder(state.lease, nowMs),
    compute,
    projection: keptSeq === undefined ? projection : { ...projection, deletionState: DeletionState.DELETION_PENDING },
    keptSeq,
  };
}

/** The holder of a lease that has not run out. */
export function liveHolder(lease: Lease | undefined, nowMs: number): HostId | undefined {
  return lease !== undefined && lease.untilMs > nowMs ? lease.holder : undefined;
}

/** Whether the records say that the session is deleted. Any state that is not ACTIVE counts as deleted. */
export function isDeleted(projection: Projection): boolean {
  return projection.deletionState !== DeletionState.DELETION_ACTIVE;
}

/** Whether the session can be used: it is whole and not deleted. */
export function isLive(state: SessionState): boolean {
  return state.keptSeq === undefined && !isDeleted(state.projection);
}

/** The last record that can be read. */
export function readableSeq(state: SessionState): Seq {
  return state.keptSeq ?? state.projection.lastSeq;
}

/** Whether further records of the session may still be adopted before anybody can use it. */
export function isIncomplete(state: SessionState): boolean {
  return state.keptSeq === state.projection.lastSeq;
}
