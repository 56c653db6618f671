/** What a session's row tells of its compute, read for those who bring it back. */

import { create } from "@bufbuild/protobuf";
import type { SessionUid } from "../base/ids.ts";
import { ComputeRefSchema, SnapshotRefSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { SessionRow } from "../journal/index.ts";
import { ComputeState, Resumability, type ComputeRef, type HarnessDescriptor, type SnapshotRef } from "../spi/index.ts";

/**
 * What to restore a session from: what its row tells. A session that came from another host has a SUSPEND and no compute here; its
 * snapshot is then the recorded one.
 */
export function computeToRestore(row: SessionRow): ComputeRef | undefined {
  const { snapshot } = row.projection;
  if (row.compute !== undefined || snapshot === undefined) return row.compute;
  return create(ComputeRefSchema, { snapshot: create(SnapshotRefSchema, snapshot) });
}

/** The snapshot of a session that is its journal and nothing else. */
export function journalAlone(session: SessionUid): SnapshotRef {
  return create(SnapshotRefSchema, { local: session });
}

/** Whether a session has to be woken: its sandbox is paused or gone. */
export function isAsleep(row: SessionRow): boolean {
  const { computeState } = row.projection;
  return computeState === ComputeState.COMPUTE_COLD || computeState === ComputeState.COMPUTE_WARM;
}

/** Whether a harness keeps its state in memory. */
export function keepsMemory(descriptor: HarnessDescriptor | undefined): boolean {
  return descriptor?.capabilities?.resumability === Resumability.REQUIRES_MEMORY_SNAPSHOT;
}
