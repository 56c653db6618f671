/** Suspend, Resume, Fork and Lineage as routes: a session's transitions and its family. */

import { create } from "@bufbuild/protobuf";
import {
  ForkRequestSchema,
  ForkResponseSchema,
  ResumeRequestSchema,
  SessionSchema,
  SuspendRequestSchema,
} from "../../gen/agentsessions/v1/session_pb.ts";
import { LineageRequestSchema, LineageResponseSchema } from "../../gen/holdfast/v1/lineage_pb.ts";
import type { JournalService, SessionsService } from "../../service/contract.ts";
import { decodeJsonText } from "./decode.ts";
import { jsonResponse, messageJson, sessionJson } from "./json.ts";
import { parametersOf } from "./query.ts";
import type { Route } from "./route.ts";
import { pathUid } from "./session-routes.ts";

/** The routes of a session's transitions and of its family. */
export function lifecycleRoutes(services: { readonly sessions: SessionsService; readonly journal: JournalService }): readonly Route[] {
  const { sessions, journal } = services;
  return [suspendRoute(sessions), resumeRoute(sessions), forkRoute(sessions), lineageRoute(journal)];
}

function suspendRoute(sessions: SessionsService): Route {
  return {
    operationId: "suspend",
    method: "POST",
    path: "/v1/sessions/{uid}/suspend",
    summary: "Free a session's compute",
    description: "Refused while a turn runs. Repeating it changes nothing. The body may be empty.",
    query: {},
    body: SuspendRequestSchema,
    answers: [{ kind: "message", status: 200, schema: SessionSchema, description: "The session, with `compute_state` COMPUTE_COLD." }],
    async handle({ uid, text, context }) {
      const request = decodeJsonText(SuspendRequestSchema, text);
      request.session = pathUid(uid, request.session);
      return jsonResponse(sessionJson(await sessions.suspend(request, context)));
    },
  };
}

function resumeRoute(sessions: SessionsService): Route {
  return {
    operationId: "resume",
    method: "POST",
    path: "/v1/sessions/{uid}/resume",
    summary: "Bring a session back and let its interrupted turn go on",
    description:
      "Answers once the turn has ended or waits for a decision; `records` follows it meanwhile. A turn goes on when its client goes away. " +
      "Nothing to do changes nothing. The body may be empty.",
    query: {},
    body: ResumeRequestSchema,
    answers: [{ kind: "message", status: 200, schema: SessionSchema, description: "The session as it is then." }],
    async handle({ uid, text, context }) {
      const request = decodeJsonText(ResumeRequestSchema, text);
      request.session = pathUid(uid, request.session);
      return jsonResponse(sessionJson(await sessions.resume(request, context)));
    },
  };
}

function forkRoute(sessions: SessionsService): Route {
  return {
    operationId: "fork",
    method: "POST",
    path: "/v1/sessions/{uid}/fork",
    summary: "Fork a session at a seq",
    description: "`count` children, 1 to 128, that share the records up to `at_seq` (0 is the head) by reference: all of them or none.",
    query: {},
    body: ForkRequestSchema,
    answers: [{ kind: "message", status: 200, schema: ForkResponseSchema, description: "The children." }],
    async handle({ uid, text, context }) {
      const request = decodeJsonText(ForkRequestSchema, text);
      request.session = pathUid(uid, request.session);
      return jsonResponse(messageJson(ForkResponseSchema, await sessions.fork(request, context)));
    },
  };
}

function lineageRoute(journal: JournalService): Route {
  return {
    operationId: "lineage",
    method: "GET",
    path: "/v1/sessions/{uid}/lineage",
    summary: "Read a session's family",
    description: "From any member: the oldest ancestor and everything forked from it, each after its parent, deleted members included.",
    query: parametersOf(LineageRequestSchema, { rows_max: "Members at most: 0 is 1,000, more than 10,000 is 10,000." }),
    answers: [
      { kind: "message", status: 200, schema: LineageResponseSchema, description: "The members; `truncated` when there are more." },
    ],
    async handle({ uid, query, context }) {
      const request = create(LineageRequestSchema, { session: uid, rowsMax: query.int32("rows_max") ?? 0 });
      return jsonResponse(messageJson(LineageResponseSchema, await journal.lineage(request, context)));
    },
  };
}
