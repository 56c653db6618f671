/** Which approval request of a session a person means who decides: one that waits, or else one that was decided already. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import type { ApprovalRef, Client, LogRecord, Session } from "../client/index.ts";
import { ApprovalRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { plainLine } from "./plain.ts";

/** A request, and its decision where it is known to have one. */
export interface ApprovalRequest {
  readonly ref: ApprovalRef;
  readonly decision?: DecisionRecord | undefined;
}

export interface DecisionRecord {
  readonly record: LogRecord;
  readonly approved: boolean;
  readonly reason: string;
}

/** What is looked for: the request of a call, or, where none is named, the oldest that waits, else the last of the newest turn. */
export interface RequestSearch {
  readonly call: string | undefined;
  readonly signal: AbortSignal;
}

/** Finds it. Throws FAILED_PRECONDITION where there is none. */
export async function approvalRequest(client: Client, session: Session, search: RequestSearch): Promise<ApprovalRequest> {
  const { call, signal } = search;
  const { pendingApproval } = session;
  if (pendingApproval !== undefined && (call === undefined || pendingApproval.toolCallId === call)) return { ref: pendingApproval };
  const waiting = call === undefined ? undefined : await waitingRequest(client, session, call, signal);
  const found = waiting ?? (await lastRequest(client, session, search));
  if (found !== undefined) return found;
  if (call === undefined) throw nothingWaits("session: nothing in it waits for a decision");
  throw nothingWaits("--call: the session has asked for no decision on a call with this id; holdfast approvals lists what waits");
}

/** Why another decision on a request that nobody named changes nothing. */
export function decidedOtherwise({ ref }: ApprovalRequest, { approved }: DecisionRecord): HoldfastError {
  const word = approved ? "approved" : "denied";
  return nothingWaits(`session: nothing in it waits for a decision; its last call, ${plainLine(ref.toolCallId)}, is ${word} already`);
}

function nothingWaits(message: string): HoldfastError {
  return new HoldfastError("failed_precondition", message);
}

async function waitingRequest(client: Client, session: Session, call: string, signal: AbortSignal): Promise<ApprovalRequest | undefined> {
  const { uid, project } = session.metadata ?? {};
  for await (const { session: of, ref } of client.toolCalls.approvals({ project, signal })) {
    if (of === uid && ref?.toolCallId === call) return { ref };
  }
  return undefined;
}

/** Records that are looked at in one step back. */
const LOOK_BACK_RECORDS = 256n;

/** The session's last request: of a call in any turn, or of any call in the newest turn. A fork's parent's are none of its own. */
async function lastRequest(client: Client, session: Session, { call, signal }: RequestSearch): Promise<ApprovalRequest | undefined> {
  const uid = session.metadata?.uid ?? "";
  const decisions = new Map<bigint, DecisionRecord>();
  for (let toSeq = session.lastSeq; toSeq > session.forkSeq; toSeq -= LOOK_BACK_RECORDS) {
    const first = session.forkSeq + 1n;
    const fromSeq = toSeq - LOOK_BACK_RECORDS + 1n > first ? toSeq - LOOK_BACK_RECORDS + 1n : first;
    const records = await Array.fromAsync(client.sessions.replay(uid, { fromSeq, toSeq, signal }), ({ record }) => record);
    for (const record of records.toReversed()) {
      const { body, executionId = "" } = record.event ?? {};
      if (body?.case === "approvalResult") {
        const { requestSeq, approved, reason } = body.value;
        decisions.set(requestSeq, { record, approved, reason });
      } else if (body?.case === "approval" && (call === undefined || body.value.toolCallId === call)) {
        const ref = create(ApprovalRefSchema, { executionId, toolCallId: body.value.toolCallId, requestSeq: record.seq });
        return { ref, decision: decisions.get(record.seq) };
      } else if (body?.case === "executionStart" && call === undefined) return undefined;
    }
  }
  return undefined;
}
