/** The unary calls of `Sessions` and `Journal` as routes. The body of a POST is the request message of the call. */

import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../../base/errors.ts";
import {
  CancelRequestSchema,
  CreateSessionRequestSchema,
  DeleteSessionRequestSchema,
  GetSessionRequestSchema,
  ListSessionsRequestSchema,
  ListSessionsResponseSchema,
  SessionSchema,
} from "../../gen/agentsessions/v1/session_pb.ts";
import { VerifyRequestSchema, VerifyResponseSchema } from "../../gen/holdfast/v1/journal_pb.ts";
import type { JournalService, SessionsService } from "../../service/contract.ts";
import { decodeJsonText } from "./decode.ts";
import { jsonResponse, messageJson, sessionJson } from "./json.ts";
import { parametersOf } from "./query.ts";
import type { Answer, Route } from "./route.ts";

const SESSION = { kind: "message", status: 200, schema: SessionSchema, description: "The session." } as const satisfies Answer;

/** The routes that answer with one JSON document. */
export function sessionRoutes(services: { readonly sessions: SessionsService; readonly journal: JournalService }): readonly Route[] {
  return [...collectionRoutes(services.sessions), ...memberRoutes(services.sessions), verifyRoute(services.journal)];
}

function collectionRoutes(sessions: SessionsService): readonly Route[] {
  return [
    {
      operationId: "createSession",
      method: "POST",
      path: "/v1/sessions",
      summary: "Create a session",
      description: "Output-only fields (`metadata.uid`, `last_seq`, the states …) must be left out.",
      query: {},
      body: CreateSessionRequestSchema,
      answers: [{ ...SESSION, status: 201, description: "The new session; `Location` is its path." }],
      async handle({ text, context }) {
        const session = await sessions.createSession(decodeJsonText(CreateSessionRequestSchema, text), context);
        const location = `/v1/sessions/${encodeURIComponent(session.metadata?.uid ?? "")}`;
        return jsonResponse(sessionJson(session), { status: 201, headers: { location } });
      },
    },
    {
      operationId: "listSessions",
      method: "GET",
      path: "/v1/sessions",
      summary: "List the sessions of a project",
      description: "Newest first. The listing is stable while sessions are created; deleted sessions are left out.",
      query: parametersOf(ListSessionsRequestSchema, {
        project: "The exact project; empty is the default project.",
        page_size: "Sessions of a page: 0 is 50, more than 500 is 500.",
        page_token: "The `next_page_token` of the page before; empty for the first page.",
      }),
      answers: [{ kind: "message", status: 200, schema: ListSessionsResponseSchema, description: "A page of sessions." }],
      async handle({ query, context }) {
        const request = create(ListSessionsRequestSchema, {
          project: query.text("project"),
          pageSize: query.int32("page_size") ?? 0,
          pageToken: query.text("page_token"),
        });
        return jsonResponse(messageJson(ListSessionsResponseSchema, await sessions.listSessions(request, context)));
      },
    },
  ];
}

function memberRoutes(sessions: SessionsService): readonly Route[] {
  return [
    {
      operationId: "getSession",
      method: "GET",
      path: "/v1/sessions/{uid}",
      summary: "Read a session",
      description: "Deleted sessions too, until their storage is reclaimed.",
      query: {},
      answers: [SESSION],
      async handle({ uid, context }) {
        return jsonResponse(sessionJson(await sessions.getSession(create(GetSessionRequestSchema, { uid }), context)));
      },
    },
    {
      operationId: "deleteSession",
      method: "DELETE",
      path: "/v1/sessions/{uid}",
      summary: "Delete a session",
      description: "Records the intent to delete, after cancelling a running turn. Repeating it changes nothing.",
      query: {},
      answers: [{ ...SESSION, description: "The session, with `deletion_state` DELETION_PENDING." }],
      async handle({ uid, context }) {
        return jsonResponse(sessionJson(await sessions.deleteSession(create(DeleteSessionRequestSchema, { uid }), context)));
      },
    },
    {
      operationId: "cancel",
      method: "POST",
      path: "/v1/sessions/{uid}/cancel",
      summary: "Cancel the running turn",
      description: "Answers once the turn's END is durable. A session without a turn is returned as it is. The body may be empty.",
      query: {},
      body: CancelRequestSchema,
      answers: [SESSION],
      async handle({ uid, text, context }) {
        const request = decodeJsonText(CancelRequestSchema, text);
        request.session = pathUid(uid, request.session);
        return jsonResponse(sessionJson(await sessions.cancel(request, context)));
      },
    },
  ];
}

function verifyRoute(journal: JournalService): Route {
  return {
    operationId: "verify",
    method: "GET",
    path: "/v1/sessions/{uid}/verify",
    summary: "Verify a session's hash chain",
    description:
      "From its first record to its head. A broken chain is an answer, not an error: `intact` is left out and `fault` says where.",
    query: {},
    answers: [{ kind: "message", status: 200, schema: VerifyResponseSchema, description: "What the verification found." }],
    async handle({ uid, context }) {
      const response = await journal.verify(create(VerifyRequestSchema, { session: uid }), context);
      return jsonResponse(messageJson(VerifyResponseSchema, response));
    },
  };
}

/** The path names the session; a body may repeat it and may not contradict it. */
export function pathUid(uid: string, inBody: string, field: "session" | "id" = "session"): string {
  if (inBody !== "" && inBody !== uid) throw invalidArgument(field, "must be left out, or be the uid in the path");
  return uid;
}
