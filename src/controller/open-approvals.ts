/** What of a session's open turn waits for a decision. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { ApprovalRefSchema, type ApprovalRef } from "../gen/agentsessions/v1/common_pb.ts";
import { ComputeState } from "../gen/agentsessions/v1/session_pb.ts";
import type { Seq } from "../base/ids.ts";
import type { JournalStore, OpenApproval, SessionRow } from "../journal/index.ts";
import type { ToolCall } from "../spi/index.ts";
import { eventAt } from "./host-tools.ts";

/** Approval calls of the session's own without a receipt, the oldest first. A fork does not inherit its parent's questions. */
export function ownApprovals(row: SessionRow): readonly OpenApproval[] {
  const forkSeq = row.parent?.forkSeq ?? 0;
  return (row.projection.openTurn?.approvals ?? []).filter(({ requestSeq }) => requestSeq > forkSeq);
}

/** Whether the session's turn is parked, and nothing that it waits for has been decided: nothing can be done for it. */
export function isParkedUndecided(row: SessionRow): boolean {
  const approvals = ownApprovals(row);
  return (
    row.projection.computeState === ComputeState.COMPUTE_COLD &&
    approvals.length > 0 &&
    approvals.every(({ decision }) => decision === undefined)
  );
}

/** The reference by which an approval call of the session is decided. */
export function approvalRefOf(row: SessionRow, { toolCallId, requestSeq }: OpenApproval): ApprovalRef {
  return create(ApprovalRefSchema, {
    executionId: row.projection.openTurn?.executionId ?? "",
    toolCallId,
    requestSeq: BigInt(requestSeq),
  });
}

/** The TOOL_CALL that a request is about: it comes before the request, and in this host's journals right before it. */
export async function requestedCall(journal: JournalStore, row: SessionRow, approval: OpenApproval): Promise<ToolCall | undefined> {
  const startSeq = row.projection.openTurn?.startSeq ?? 1;
  for (let seq = approval.requestSeq - 1; seq >= startSeq; seq--) {
    const body = (await eventAt(journal, row.seed.uid, seq as Seq))?.body;
    if (body?.case === "tool" && body.value.id === approval.toolCallId) return body.value;
  }
  return undefined;
}

/** A new turn was asked for, and another one waits for a decision meanwhile. */
export function approvalOpenError(): HoldfastError {
  return new HoldfastError("aborted", "session: its turn waits for a decision now; read the session, then retry");
}
