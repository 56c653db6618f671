/** Approve: the request of a decision, checked. */

import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../base/errors.ts";
import { seqOf, sessionUidOf } from "../base/ids.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { isPolicyActor, type Approval } from "../controller/index.ts";
import { ApprovalRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { ApproveResponseSchema, type ApproveRequest, type ApproveResponse } from "../gen/agentsessions/v1/session_pb.ts";
import { sessionOf } from "../journal/index.ts";
import { accessSession } from "./access.ts";
import type { CallContext } from "./contract.ts";
import type { ExecContext } from "./exec.ts";
import type { ServiceLimits } from "./limits.ts";
import { identityOf } from "./session-request.ts";
import { plainText } from "./text.ts";

/** The longest reason of a decision, in UTF-16 code units. */
const REASON_CHARS_MAX = 4_096;

/** See `SessionsService.approve`. */
export async function approve(host: ExecContext, request: ApproveRequest, context: CallContext): Promise<ApproveResponse> {
  const approval = parseApprove(request, host.limits);
  await accessSession(host, "session.approve", approval.session, "session", context);
  // Who decides is what the caller says, or the caller: it is recorded and grants nothing.
  const actor = approval.actor ?? context.caller.identity;
  const { row, decision } = await host.controller.approve({ ...approval, actor });
  return create(ApproveResponseSchema, { session: sessionOf(row), decision: decodeLogRecord(decision.bytes) });
}

/** Throws INVALID_ARGUMENT that names the field. An omitted decision is never a denial. */
export function parseApprove(request: ApproveRequest, limits: ServiceLimits): Approval {
  const session = sessionUidOf(request.session, "session");
  const executionId = plainText(request.executionId, "execution_id", limits.resourceCharsMax);
  const toolCallId = plainText(request.toolCallId, "tool_call_id", limits.resourceCharsMax);
  if (executionId === "") throw invalidArgument("execution_id", "must be that of the session's pending_approval");
  if (toolCallId === "") throw invalidArgument("tool_call_id", "must be that of the session's pending_approval");
  const requestSeq = seqOf(request.requestSeq, "request_seq");
  if (requestSeq === 0) throw invalidArgument("request_seq", "must be that of the session's pending_approval");
  if (request.approved === undefined) throw invalidArgument("approved", "must be set: true or false");
  if (request.reason.length > REASON_CHARS_MAX) throw invalidArgument("reason", `must have at most ${REASON_CHARS_MAX} characters`);
  if (!request.reason.isWellFormed()) throw invalidArgument("reason", "must have no lone surrogates");
  const actor = identityOf(request.identity, limits, "identity");
  if (isPolicyActor(actor)) throw invalidArgument("identity", "must not be that of the host's own decisions");
  return {
    session,
    ref: create(ApprovalRefSchema, { executionId, toolCallId, requestSeq: BigInt(requestSeq) }),
    approved: request.approved,
    reason: request.reason,
    actor,
  };
}
