/** The ToolCalls service: the calls that wait for a person, and what a person says of them. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { sessionUidOf } from "../base/ids.ts";
import type { Ports } from "../base/ports.ts";
import { approvalRefOf, eventAt, ownApprovals, requestedCall, type Controller, type Settlement } from "../controller/index.ts";
import {
  ListApprovalsResponseSchema,
  ListUnsettledResponseSchema,
  PendingApprovalSchema,
  SettleCallRequest_Outcome as Outcome,
  SettleCallResponseSchema,
  UnsettledCallSchema,
  type ApprovalUpdate,
  type WatchApprovalsRequest,
  type ListApprovalsRequest,
  type ListApprovalsResponse,
  type ListUnsettledRequest,
  type ListUnsettledResponse,
  type PendingApproval,
  type SettleCallRequest,
  type SettleCallResponse,
} from "../gen/holdfast/v1/calls_pb.ts";
import { sessionOf, type JournalStore, type ListCursor, type OpenApproval, type SessionRow } from "../journal/index.ts";
import type { Authorizer } from "../spi/index.ts";
import { accessSession, authorize } from "./access.ts";
import type { ApprovalFeed } from "./approval-feed.ts";
import type { CallContext, ToolCallsService } from "./contract.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "./limits.ts";
import { pageSizeOf, pageToken, readPageToken } from "./list-request.ts";
import { nameText, plainText } from "./text.ts";
import { watchApprovals } from "./watch-approvals.ts";

/** What the service is made of. */
export interface ToolCallsServiceOptions {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly authorizer: Authorizer;
  readonly ports: Ports;
  /** What is asked and decided; without it nothing can be watched. */
  readonly feed?: ApprovalFeed | undefined;
  readonly limits?: Partial<ServiceLimits> | undefined;
}

const WATCH_PAGE_ROWS = 100;

interface Host extends Omit<ToolCallsServiceOptions, "limits"> {
  readonly limits: ServiceLimits;
}

/** Creates the handlers of `holdfast.v1.ToolCalls`. */
export function createToolCallsService(options: ToolCallsServiceOptions): ToolCallsService {
  const host: Host = { ...options, limits: { ...SERVICE_LIMITS, ...options.limits } };
  return {
    listApprovals: (request, context) => listApprovals(host, request, context),
    watchApprovals: (request, context) => watch(host, request, context),
    listUnsettled: (request, context) => listUnsettled(host, request, context),
    settleCall: (request, context) => settleCall(host, request, context),
  };
}

/** A page ends early where its arguments get large: one session always fits. */
async function listApprovals(host: Host, request: ListApprovalsRequest, context: CallContext): Promise<ListApprovalsResponse> {
  const { journal, limits, ports } = host;
  const project = nameText(request.project, "project", limits.nameCharsMax);
  const limit = pageSizeOf(request.pageSize, limits, "sessions");
  const after = request.pageToken === "" ? undefined : readPageToken(request.pageToken, project, ports.digest);
  await authorize(host.authorizer, "session.list", { project }, context);
  const page = await journal.list({ project, openApproval: true, after, limit, signal: context.signal });
  const approvals: PendingApproval[] = [];
  let bytes = 0;
  for (const [index, row] of page.rows.entries()) {
    const own = await pendingOf(host, row);
    bytes += own.reduce((sum, { size }) => sum + size, 0);
    const before = page.rows[index - 1];
    if (bytes > limits.pageBytesSoftMax && before !== undefined) {
      return create(ListApprovalsResponseSchema, { approvals, nextPageToken: pageToken(before.seed, project, ports.digest) });
    }
    approvals.push(...own.map(({ pending }) => pending));
  }
  const nextPageToken = page.next === undefined ? "" : pageToken(page.next, project, ports.digest);
  return create(ListApprovalsResponseSchema, { approvals, nextPageToken });
}

async function* watch(host: Host, request: WatchApprovalsRequest, context: CallContext): AsyncGenerator<ApprovalUpdate, void, undefined> {
  const { journal, feed, limits } = host;
  const project = nameText(request.project, "project", limits.nameCharsMax);
  await authorize(host.authorizer, "session.list", { project }, context);
  if (feed === undefined) throw new HoldfastError("unimplemented", "approvals: this host tells of none; list them");
  const { signal } = context;
  yield* watchApprovals({ journal, feed, project, signal, waiting: () => waitingIn(host, project, signal) });
}

/** Every request of a project that nobody has decided. */
async function* waitingIn(host: Host, project: string, signal: AbortSignal): AsyncGenerator<PendingApproval, void, undefined> {
  let after: ListCursor | undefined;
  do {
    const page = await host.journal.list({ project, openApproval: true, after, limit: WATCH_PAGE_ROWS, signal });
    for (const row of page.rows) for (const { pending } of await pendingOf(host, row)) yield pending;
    after = page.next;
  } while (after !== undefined);
}

interface SizedApproval {
  readonly pending: PendingApproval;
  /** About its encoded size. */
  readonly size: number;
}

async function pendingOf(host: Host, row: SessionRow): Promise<readonly SizedApproval[]> {
  const found: SizedApproval[] = [];
  for (const approval of ownApprovals(row)) {
    if (approval.decision !== undefined) continue;
    const pending = await pendingApproval(host, row, approval);
    found.push({ pending, size: JSON.stringify(pending.call?.args ?? {}).length + 512 });
  }
  return found;
}

async function pendingApproval({ journal }: Host, row: SessionRow, approval: OpenApproval): Promise<PendingApproval> {
  const { uid, name, harness } = row.seed;
  const event = await eventAt(journal, uid, approval.requestSeq);
  const pending = create(PendingApprovalSchema, {
    session: uid,
    sessionName: name,
    harness,
    parentUid: row.parent?.uid ?? "",
    ref: approvalRefOf(row, approval),
    reason: event?.body.case === "approval" ? event.body.value.reason : "",
  });
  const call = await requestedCall(journal, row, approval);
  if (call !== undefined) pending.call = call;
  if (event?.ts !== undefined) pending.requestTime = event.ts;
  return pending;
}

async function listUnsettled(host: Host, request: ListUnsettledRequest, context: CallContext): Promise<ListUnsettledResponse> {
  const session = sessionUidOf(request.session, "session");
  const row = await accessSession(host, "session.read", session, "session", context);
  // What runs just now is not unknown.
  const isRunning = row.holder !== undefined;
  const response = create(ListUnsettledResponseSchema);
  for (const { state, callSeq, resultSeq } of await host.journal.receipts(session)) {
    if (state === "started" && isRunning) continue;
    const body = (await eventAt(host.journal, session, callSeq))?.body;
    const call = create(UnsettledCallSchema, { callSeq: BigInt(callSeq), resultSeq: BigInt(resultSeq ?? 0) });
    if (body?.case === "tool") call.call = body.value;
    response.calls.push(call);
  }
  return response;
}

async function settleCall(host: Host, request: SettleCallRequest, context: CallContext): Promise<SettleCallResponse> {
  const session = sessionUidOf(request.session, "session");
  const toolCallId = plainText(request.toolCallId, "tool_call_id", host.limits.resourceCharsMax);
  if (toolCallId === "") throw invalidArgument("tool_call_id", "must be the id of the call");
  const as = outcomeOf(request.outcome);
  await accessSession(host, "session.approve", session, "session", context);
  const row = await host.controller.settle({ session, toolCallId, as, actor: context.caller.identity });
  return create(SettleCallResponseSchema, { session: sessionOf(row) });
}

function outcomeOf(outcome: Outcome): Settlement["as"] {
  switch (outcome) {
    case Outcome.DONE:
      return "done";
    case Outcome.FAILED:
      return "failed";
    case Outcome.RETRY:
      return "retry";
    default:
      throw invalidArgument("outcome", "must be OUTCOME_DONE, OUTCOME_FAILED or OUTCOME_RETRY");
  }
}
