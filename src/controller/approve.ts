/**
 * Approve: a decision on one approval call becomes a record. It runs nothing; Resume does.
 *
 * Invariants:
 * - A request is decided once. The same decision again is the same record, whatever became of its call since.
 * - What is decided is the session's own open request: a reference that is wrong, stale or a parent's changes nothing.
 */

import { equals } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import type { HostId, Seq, SessionUid } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { EventKind, IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore, NewEvent, Receipt, SessionRow, StoredRecord } from "../journal/index.ts";
import type { ApprovalRef, IdentityRef } from "../spi/index.ts";
import { approvalResultEvent } from "./events.ts";
import { eventAt } from "./host-tools.ts";
import { ownApprovals } from "./open-approvals.ts";
import { appendedOrThrow, deletedError } from "./outcome.ts";
import type { RunningTurns } from "./running.ts";
import { RACE_ATTEMPTS_MAX, rowOf } from "./transitions.ts";

/** A decision as a caller gives it. */
export interface Approval {
  readonly session: SessionUid;
  readonly ref: ApprovalRef;
  readonly approved: boolean;
  readonly reason: string;
  /** Who decided: provenance, not authorisation. */
  readonly actor: IdentityRef | undefined;
}

/** What deciding needs of its controller. */
export interface ApproveContext {
  readonly journal: JournalStore;
  readonly running: RunningTurns;
  readonly hostId: HostId;
  readonly clock: Clock;
}

/** See `Controller.approve`. */
export async function approve(context: ApproveContext, approval: Approval): Promise<{ row: SessionRow; decision: StoredRecord }> {
  const { journal } = context;
  const { session, ref } = approval;
  for (let attempt = 0; attempt < RACE_ATTEMPTS_MAX; attempt++) {
    const row = await rowOf(journal, session);
    await requireOwnRequest(journal, row, ref);
    const earlier = await decisionOn(journal, session, ref);
    if (earlier !== undefined) return { row, decision: sameOrThrow(earlier, approval) };
    const decision = await decide(context, row, approval);
    if (decision !== undefined) return { row: await rowOf(journal, session), decision };
  }
  throw new HoldfastError("aborted", "session: it changed too often meanwhile; read it, then retry");
}

/** Throws FAILED_PRECONDITION unless the reference names an APPROVAL_REQUEST that the session made itself. */
async function requireOwnRequest(journal: JournalStore, row: SessionRow, ref: ApprovalRef): Promise<void> {
  const forkSeq = row.parent?.forkSeq ?? 0;
  if (ref.requestSeq <= BigInt(forkSeq)) throw wrongReference("it is its parent's, which a fork may not decide");
  if (ref.requestSeq > BigInt(row.projection.lastSeq)) throw wrongReference("it is past the head");
  const event = await eventAt(journal, row.seed.uid, Number(ref.requestSeq) as Seq);
  if (event?.body.case !== "approval" || event.body.value.toolCallId !== ref.toolCallId || event.executionId !== ref.executionId) {
    throw wrongReference("no request of the session has this execution_id, tool_call_id and request_seq");
  }
}

function wrongReference(why: string): HoldfastError {
  return new HoldfastError("failed_precondition", `request_seq: ${why}; read the session's pending_approval`, { field: "request_seq" });
}

interface Decided {
  readonly record: StoredRecord;
  readonly approved: boolean;
  readonly reason: string;
  readonly actor: IdentityRef | undefined;
}

/** The decision that is recorded on a request, looked for up to the end of its turn. */
async function decisionOn(journal: JournalStore, session: SessionUid, { requestSeq }: ApprovalRef): Promise<Decided | undefined> {
  for await (const page of journal.read({ session, fromSeq: (Number(requestSeq) + 1) as Seq })) {
    for (const record of page) {
      if (record.kind === EventKind.EVENT_APPROVAL_RESULT) {
        const event = decodeLogRecord(record.bytes).event;
        if (event?.body.case !== "approvalResult" || event.body.value.requestSeq !== requestSeq) continue;
        const { approved, reason } = event.body.value;
        return { record, approved, reason, actor: event.actor };
      }
      if (record.kind === EventKind.EVENT_END || record.kind === EventKind.EVENT_EXECUTION_START) return undefined;
    }
  }
  return undefined;
}

function sameOrThrow(decided: Decided, { approved, reason, actor }: Approval): StoredRecord {
  if (decided.approved === approved && decided.reason === reason && isSameActor(decided.actor, actor)) return decided.record;
  const what = `it was ${decided.approved ? "approved" : "denied"} at seq ${decided.record.seq}`;
  throw new HoldfastError("failed_precondition", `approved: the request has been decided already: ${what}`, { field: "approved" });
}

function isSameActor(left: IdentityRef | undefined, right: IdentityRef | undefined): boolean {
  if (left === undefined || right === undefined) return left === right;
  return equals(IdentityRefSchema, left, right);
}

/** Records the decision; undefined when a race was lost and everything is to be looked at anew. */
async function decide(context: ApproveContext, row: SessionRow, approval: Approval): Promise<StoredRecord | undefined> {
  const { journal, clock } = context;
  if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw deletedError();
  const { ref, approved, reason, actor, session } = approval;
  const requestSeq = Number(ref.requestSeq) as Seq;
  const executionId = row.projection.openTurn?.executionId;
  const isOpen = executionId === ref.executionId && ownApprovals(row).some((open) => open.requestSeq === requestSeq);
  if (executionId === undefined || !isOpen) throw wrongReference("its turn no longer waits for it");
  const stamp = { executionId, clock };
  const event = approvalResultEvent(stamp, { toolCallId: ref.toolCallId, requestSeq, approved, reason }, actor);
  const turn = context.running.get(session);
  if (turn === undefined && context.running.has(session)) {
    throw new HoldfastError("aborted", "session: its turn is being taken up; read the session, then retry");
  }
  if (turn === undefined) return append(context, row, event, await intendedReceipt(journal, row, ref));
  // The turn is on its way to park: the decision goes before its SUSPEND, by the one who writes.
  const seq = await turn.decide(requestSeq, event);
  if (seq === undefined) {
    if (!turn.isRunning) await turn.outcome;
    return undefined;
  }
  for await (const [record] of journal.read({ session, fromSeq: seq, toSeq: seq })) return record;
  return undefined;
}

async function append(
  { journal, hostId }: ApproveContext,
  row: SessionRow,
  event: NewEvent,
  receipt: Receipt | undefined,
): Promise<StoredRecord | undefined> {
  const outcome = await journal.append({
    session: row.seed.uid,
    expectedLastSeq: row.projection.lastSeq,
    writer: { kind: "claim", holder: hostId, leaseMs: 0 },
    events: [event],
    receipts: receipt === undefined ? [] : [receipt],
  });
  if (outcome.kind === "conflict" || outcome.kind === "deleted") return undefined;
  return appendedOrThrow(outcome).records[0];
}

/**
 * The receipt of a call that has none here, since its journal came from elsewhere while it waited: it has not begun, and what is decided
 * now may run.
 */
async function intendedReceipt(journal: JournalStore, row: SessionRow, ref: ApprovalRef): Promise<Receipt | undefined> {
  const session = row.seed.uid;
  const startSeq = row.projection.openTurn?.startSeq ?? (1 as Seq);
  for (let seq = Number(ref.requestSeq) - 1; seq >= startSeq; seq--) {
    const body = (await eventAt(journal, session, seq as Seq))?.body;
    if (body?.case !== "tool" || body.value.id !== ref.toolCallId) continue;
    const { idempotencyKey: key, id: callId } = body.value;
    const [found] = await journal.receipts(session, { key });
    return found === undefined ? { key, callId, callSeq: seq as Seq, state: "intended" } : undefined;
  }
  return undefined;
}
