/** The Session resource as a view of a row: what callers of the API are told. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ApprovalRefSchema, type ApprovalRef } from "../gen/agentsessions/v1/common_pb.ts";
import { ComputeRefSchema, SessionSchema, SnapshotRefSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { ComputeRef, Session } from "../gen/agentsessions/v1/session_pb.ts";
import { execStateOf, type Projection } from "./projection.ts";
import type { SessionRow } from "./store.ts";

/** The Session of a row. */
export function sessionOf(row: SessionRow): Session {
  const { seed, projection } = row;
  const session = create(SessionSchema, {
    metadata: {
      project: seed.project,
      name: seed.name,
      uid: seed.uid,
      version: BigInt(row.version),
      createTime: timestampFromMs(seed.createTimeMs),
      updateTime: timestampFromMs(row.updateTimeMs),
    },
    harness: seed.harness,
    model: seed.model,
    lastSeq: BigInt(projection.lastSeq),
    labels: { ...seed.labels },
    annotations: { ...seed.annotations },
    execState: execStateOf(projection, row.holder !== undefined),
    computeState: projection.computeState,
    deletionState: projection.deletionState,
  });
  if (row.parent !== undefined) {
    session.parentUid = row.parent.uid;
    session.forkSeq = BigInt(row.parent.forkSeq);
  }
  if (seed.identity !== undefined) session.identity = seed.identity;
  if (seed.origin !== undefined) session.origin = seed.origin;
  const compute = computeOf(row);
  if (compute !== undefined) session.compute = compute;
  const pending = pendingApprovalOf(projection, row.parent?.forkSeq ?? 0);
  if (pending !== undefined) session.pendingApproval = pending;
  return session;
}

function computeOf(row: SessionRow): ComputeRef | undefined {
  const { snapshot } = row.projection;
  if (row.compute === undefined && snapshot === undefined) return undefined;
  const compute = create(ComputeRefSchema, row.compute ?? {});
  // What the row tells is newer than the last SUSPEND.
  if (snapshot !== undefined) compute.snapshot ??= create(SnapshotRefSchema, snapshot);
  return compute;
}

/** The oldest request of the session's own that nobody has decided; those before its fork are the parent's. */
function pendingApprovalOf(projection: Projection, forkSeq: number): ApprovalRef | undefined {
  const turn = projection.openTurn;
  const open = turn?.approvals.find((approval) => approval.decision === undefined && approval.requestSeq > forkSeq);
  if (turn === undefined || open === undefined) return undefined;
  return create(ApprovalRefSchema, {
    executionId: turn.executionId,
    toolCallId: open.toolCallId,
    requestSeq: BigInt(open.requestSeq),
  });
}
