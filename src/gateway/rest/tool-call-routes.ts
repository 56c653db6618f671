/** Tool calls that wait for a person, as routes: approvals, and calls whose outcome is not known. */

import { create } from "@bufbuild/protobuf";
import { ApproveRequestSchema, ApproveResponseSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import {
  ListApprovalsRequestSchema,
  ListApprovalsResponseSchema,
  ListUnsettledRequestSchema,
  ListUnsettledResponseSchema,
  SettleCallRequestSchema,
  SettleCallResponseSchema,
} from "../../gen/holdfast/v1/calls_pb.ts";
import type { SessionsService, ToolCallsService } from "../../service/contract.ts";
import { decodeJsonText } from "./decode.ts";
import { jsonResponse, messageJson } from "./json.ts";
import { parametersOf } from "./query.ts";
import type { Route } from "./route.ts";
import { pathUid } from "./session-routes.ts";

/** The routes of tool calls that wait for a person. */
export function toolCallRoutes(services: { readonly sessions: SessionsService; readonly toolCalls: ToolCallsService }): readonly Route[] {
  const { sessions, toolCalls } = services;
  return [approvalsRoute(toolCalls), approveRoute(sessions), unsettledRoute(toolCalls), settleRoute(toolCalls)];
}

function approvalsRoute(toolCalls: ToolCallsService): Route {
  return {
    operationId: "listApprovals",
    method: "GET",
    path: "/v1/approvals",
    summary: "List the approval requests of a project",
    description: "Those that nobody has decided, of all sessions and their children, with the calls' arguments in full.",
    query: parametersOf(ListApprovalsRequestSchema, {
      project: "The project; empty is the default one.",
      page_size: "Sessions that a page looks at, at most: 0 is 50, more than 500 is 500.",
      page_token: "The `next_page_token` of the page before.",
    }),
    answers: [
      { kind: "message", status: 200, schema: ListApprovalsResponseSchema, description: "One page; it may be empty and not the last." },
    ],
    async handle({ query, context }) {
      const request = create(ListApprovalsRequestSchema, {
        project: query.text("project"),
        pageSize: query.int32("page_size") ?? 0,
        pageToken: query.text("page_token"),
      });
      return jsonResponse(messageJson(ListApprovalsResponseSchema, await toolCalls.listApprovals(request, context)));
    },
  };
}

function approveRoute(sessions: SessionsService): Route {
  return {
    operationId: "approve",
    method: "POST",
    path: "/v1/sessions/{uid}/approve",
    summary: "Decide an approval request",
    description:
      "`execution_id`, `tool_call_id` and `request_seq` are those of the session's `pending_approval`; `approved` must be given. The decision is " +
      "committed and nothing is run until the session is resumed. The same decision again is answered with the same record.",
    query: {},
    body: ApproveRequestSchema,
    answers: [{ kind: "message", status: 200, schema: ApproveResponseSchema, description: "The session and the decision's record." }],
    async handle({ uid, text, context }) {
      const request = decodeJsonText(ApproveRequestSchema, text);
      request.session = pathUid(uid, request.session);
      return jsonResponse(messageJson(ApproveResponseSchema, await sessions.approve(request, context)));
    },
  };
}

function unsettledRoute(toolCalls: ToolCallsService): Route {
  return {
    operationId: "listUnsettled",
    method: "GET",
    path: "/v1/sessions/{uid}/unsettled",
    summary: "List a session's tool calls whose outcome is not known",
    description: "Calls that had begun when their host stopped, and that are not run again.",
    query: {},
    answers: [{ kind: "message", status: 200, schema: ListUnsettledResponseSchema, description: "The calls." }],
    async handle({ uid, context }) {
      const request = create(ListUnsettledRequestSchema, { session: uid });
      return jsonResponse(messageJson(ListUnsettledResponseSchema, await toolCalls.listUnsettled(request, context)));
    },
  };
}

function settleRoute(toolCalls: ToolCallsService): Route {
  return {
    operationId: "settleCall",
    method: "POST",
    path: "/v1/sessions/{uid}/settle",
    summary: "Say what became of a tool call whose outcome is not known",
    description: "`outcome` is OUTCOME_DONE, OUTCOME_FAILED or OUTCOME_RETRY. Nothing is run until the session is resumed.",
    query: {},
    body: SettleCallRequestSchema,
    answers: [{ kind: "message", status: 200, schema: SettleCallResponseSchema, description: "The session as it is then." }],
    async handle({ uid, text, context }) {
      const request = decodeJsonText(SettleCallRequestSchema, text);
      request.session = pathUid(uid, request.session);
      return jsonResponse(messageJson(SettleCallResponseSchema, await toolCalls.settleCall(request, context)));
    },
  };
}
