/** What a session's row tells of its compute, read for those who bring it back. */

import { create } from "@bufbuild/protobuf";
import { ComputeRefSchema, SnapshotRefSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { SessionRow } from "../journal/index.ts";
import type { ComputeRef } from "../spi/index.ts";

/**
 * What to restore a session from: what its row tells. A session that came from another host has a SUSPEND and no compute here; its
 * snapshot is then the recorded one.
 */
export function computeToRestore(row: SessionRow): ComputeRef | undefined {
  const { snapshot } = row.projection;
  if (row.compute !== undefined || snapshot === undefined) return row.compute;
  return create(ComputeRefSchema, { snapshot: create(SnapshotRefSchema, snapshot) });
}
