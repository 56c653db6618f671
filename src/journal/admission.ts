/**
 * Whether an append may happen, and what it makes of a session. Pure: a store calls it with the state that its transaction
 * would extend.
 *
 * Refusals are tried in this order: not-found, deleted, held or fenced, conflict. A writer that lost its session learns
 * that before it learns anything about the head.
 */

import { invariant, unreachable } from "../base/assert.ts";
import type { Fence } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import type { ComputeRef } from "../gen/agentsessions/v1/session_pb.ts";
import type { Projection } from "./projection.ts";
import { seal } from "./seal.ts";
import { isDeleted, isLive, liveHolder, type Lease, type SessionState } from "./session-state.ts";
import type { AppendOutcome, AppendRequest, ComputeChange, Writer } from "./store.ts";
import type { StoredRecord } from "./record.ts";

/** Why an append is refused. */
export type Refusal = Exclude<AppendOutcome, { kind: "appended" }>;

/** An append that may happen: the fence it writes under and the lease after it. */
export interface Admitted {
  readonly kind: "admitted";
  readonly fence: Fence;
  readonly lease: Lease | undefined;
}

/** Decides about `request` on top of `state`; undefined is an unknown session. */
export function admit(state: SessionState | undefined, request: AppendRequest, nowMs: number): Admitted | Refusal {
  if (state === undefined) return { kind: "not-found" };
  if (!isLive(state)) return { kind: "deleted" };
  const admitted = admitWriter(state, request.writer, nowMs);
  if (admitted.kind !== "admitted") return admitted;
  const { lastSeq } = state.projection;
  if (request.expectedLastSeq !== undefined && request.expectedLastSeq !== lastSeq) return { kind: "conflict", lastSeq };
  return admitted;
}

function admitWriter(state: SessionState, writer: Writer, nowMs: number): Admitted | Refusal {
  switch (writer.kind) {
    case "claim":
      return admitClaim(state, writer, nowMs);
    case "hold":
    case "release": {
      if (writer.fence !== state.fence) return { kind: "fenced", fence: state.fence };
      return { kind: "admitted", fence: state.fence, lease: writer.kind === "hold" ? state.lease : undefined };
    }
    default:
      return unreachable(writer);
  }
}

type Claim = Extract<Writer, { kind: "claim" }>;

/**
 * A claim with `keep` goes on under that fence while it is the newest. Taking a live lease over always mints: the holder
 * that is pushed out may know the newest fence, and must not be able to write under it any more.
 */
function admitClaim(state: SessionState, claim: Claim, nowMs: number): Admitted | Refusal {
  invariant(claim.leaseMs >= 0, "a lease does not end before it begins");
  const lease: Lease | undefined = claim.leaseMs === 0 ? undefined : { holder: claim.holder, untilMs: nowMs + claim.leaseMs };
  const minted = (state.fence + 1) as Fence;
  const holder = liveHolder(state.lease, nowMs);
  if (holder !== undefined && holder !== claim.holder) {
    return claim.takeOver === true ? { kind: "admitted", fence: minted, lease } : { kind: "held", holder };
  }
  if (claim.keep === undefined) return { kind: "admitted", fence: minted, lease };
  if (claim.keep !== state.fence) return { kind: "fenced", fence: state.fence };
  return { kind: "admitted", fence: state.fence, lease };
}

/** A session after an append, and the append's records. */
export interface Advanced {
  readonly state: SessionState;
  readonly records: readonly StoredRecord[];
}

/**
 * Seals an admitted append onto `state`. The version grows by one if anything that a row shows has changed. Throws as
 * `seal` does, and then nothing has changed.
 */
export function advance(state: SessionState, admitted: Admitted, request: AppendRequest, digest: Digest, nowMs: number): Advanced {
  const { records, projection: sealed } = seal(state.projection, admitted.fence, request.events, digest);
  const projection = withComputeState(sealed, request.compute);
  const compute = changedCompute(state.compute, request.compute);
  // A deleted session takes no further append, so nobody could ever release its lease.
  const lease = isDeleted(projection) ? undefined : admitted.lease;
  const shown =
    records.length > 0 ||
    request.compute !== undefined ||
    admitted.fence !== state.fence ||
    liveHolder(lease, nowMs) !== liveHolder(state.lease, nowMs);
  const { key, seed, parent } = state;
  const version = shown ? state.version + 1 : state.version;
  const updateTimeMs = shown ? Math.max(state.updateTimeMs, nowMs) : state.updateTimeMs;
  const { fence } = admitted;
  return { records, state: { key, seed, parent, updateTimeMs, version, fence, lease, compute, projection, keptSeq: undefined } };
}

function withComputeState(projection: Projection, change: ComputeChange | undefined): Projection {
  return change?.state === undefined ? projection : { ...projection, computeState: change.state };
}

function changedCompute(before: ComputeRef | undefined, change: ComputeChange | undefined): ComputeRef | undefined {
  if (change?.ref === undefined) return before;
  return change.ref ?? undefined;
}

/** The lease after a renewal; undefined when the lease or the fence was lost. */
export function renewed(state: SessionState, holder: Lease["holder"], fence: Fence, leaseMs: number, nowMs: number): Lease | undefined {
  if (state.fence !== fence || state.lease?.holder !== holder || !isLive(state)) return undefined;
  return { holder, untilMs: nowMs + leaseMs };
}
