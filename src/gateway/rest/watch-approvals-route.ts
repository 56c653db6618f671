/** WatchApprovals as a route: the live inbox. */

import { create } from "@bufbuild/protobuf";
import type { Log } from "../../base/ports.ts";
import {
  DecidedApprovalSchema,
  ListedApprovalsSchema,
  PendingApprovalSchema,
  WatchApprovalsRequestSchema,
  type ApprovalUpdate,
} from "../../gen/holdfast/v1/calls_pb.ts";
import type { ToolCallsService } from "../../service/contract.ts";
import { messageJson } from "./json.ts";
import type { RestLimits } from "./limits.ts";
import { parametersOf } from "./query.ts";
import type { Route } from "./route.ts";
import { sseResponse, type SseEvent } from "./sse.ts";

/** See `docs/rest.md`. */
export function watchApprovalsRoute(dependencies: {
  readonly toolCalls: ToolCallsService;
  readonly limits: RestLimits;
  readonly log: Log;
}): Route {
  const { toolCalls, limits, log } = dependencies;
  return {
    operationId: "watchApprovals",
    method: "GET",
    path: "/v1/approvals/events",
    summary: "Follow the approval requests of a project",
    description:
      "An event stream: `requested` for each request that waits, `listed` once, then `requested` and `decided` as they come. It goes on until " +
      "the client leaves or the server closes.",
    query: parametersOf(WatchApprovalsRequestSchema, { project: "The project; empty is the default one." }),
    answers: [
      {
        kind: "events",
        events: { data: { requested: PendingApprovalSchema, decided: DecidedApprovalSchema, listed: ListedApprovalsSchema }, end: {} },
        description: "Requests and decisions.",
      },
    ],
    async handle({ query, context, onGone }) {
      const updates = toolCalls.watchApprovals(create(WatchApprovalsRequestSchema, { project: query.text("project") }), context);
      const first = await updates.next();
      const { signal } = context;
      const { heartbeatMs } = limits;
      return sseResponse(first, updates, { operation: "WatchApprovals", signal, onGone, heartbeatMs, log, encode, endData: () => ({}) });
    },
  };
}

function encode({ update }: ApprovalUpdate): SseEvent {
  switch (update.case) {
    case "requested":
      return { event: "requested", data: messageJson(PendingApprovalSchema, update.value) };
    case "decided":
      return { event: "decided", data: messageJson(DecidedApprovalSchema, update.value) };
    case "listed":
    case undefined:
      return { event: "listed", data: {} };
  }
}
