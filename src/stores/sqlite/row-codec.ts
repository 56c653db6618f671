/**
 * What is stored of a session beside the columns that queries use.
 *
 * The seed is kept as an `agentsessions.v1.Session` with the fields that creation sets, so that its form is the contract's and
 * needs no version of its own. What was projected beyond the head is a small JSON text.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  SessionSchema,
  ComputeRefSchema,
  type ComputeRef,
  type ComputeState,
  type DeletionState,
} from "../../gen/agentsessions/v1/session_pb.ts";
import type { SessionUid } from "../../base/index.ts";
import type { EndState, OpenTurn, Projection, RecordedSnapshot, SessionSeed, SessionState } from "../../journal/index.ts";

/** The stored form of what a seed has beyond uid, project, name and create time, which are columns. */
export function encodeSeed(seed: SessionSeed): Uint8Array {
  const session = create(SessionSchema, {
    harness: seed.harness,
    model: seed.model,
    labels: { ...seed.labels },
    annotations: { ...seed.annotations },
  });
  if (seed.identity !== undefined) session.identity = seed.identity;
  if (seed.origin !== undefined) session.origin = seed.origin;
  return toBinary(SessionSchema, session);
}

/** The columns of a seed. */
export interface SeedColumns {
  readonly uid: string;
  readonly project: string;
  readonly name: string;
  readonly createTimeMs: number;
}

/** A seed as it was created. */
export function decodeSeed(columns: SeedColumns, bytes: Uint8Array): SessionSeed {
  const { harness, model, identity, origin, labels, annotations } = fromBinary(SessionSchema, bytes);
  return { ...columns, uid: columns.uid as SessionUid, harness, model, identity, origin, labels, annotations };
}

/** The part of a projection that is neither the head nor, as a rule, the deletion state. Fields that are undefined are left out. */
interface StateText {
  readonly openTurn?: OpenTurn | undefined;
  readonly lastEnd?: EndState | undefined;
  readonly computeState: ComputeState;
  readonly snapshot?: RecordedSnapshot | undefined;
  /** What the records say of a session that is there in part. Its column says that it cannot be used, whatever they say. */
  readonly deletionState?: DeletionState | undefined;
}

/** The stored form of a projection without its head and deletion state, which are columns. */
export function encodeState({ projection, keptSeq }: Pick<SessionState, "projection" | "keptSeq">): string {
  const { openTurn, lastEnd, computeState, snapshot } = projection;
  const deletionState = keptSeq === undefined ? undefined : projection.deletionState;
  const state: StateText = { openTurn, lastEnd, computeState, snapshot, deletionState };
  return JSON.stringify(state);
}

/** Whether both projections have the same stored state. Folding keeps what does not change, so identity decides. */
export function sameState(left: Projection, right: Projection): boolean {
  return (
    left.openTurn === right.openTurn &&
    left.lastEnd === right.lastEnd &&
    left.computeState === right.computeState &&
    left.snapshot === right.snapshot
  );
}

/** A projection from its stored parts. */
export function decodeState(text: string, head: Pick<Projection, "lastSeq" | "headHash" | "deletionState">): Projection {
  const { openTurn, lastEnd, computeState, snapshot, deletionState = head.deletionState } = JSON.parse(text) as StateText;
  return { ...head, openTurn, lastEnd, computeState, snapshot, deletionState };
}

export function encodeCompute(compute: ComputeRef | undefined): Uint8Array | null {
  return compute === undefined ? null : toBinary(ComputeRefSchema, compute);
}

export function decodeCompute(bytes: Uint8Array | null): ComputeRef | undefined {
  return bytes === null ? undefined : fromBinary(ComputeRefSchema, bytes);
}
