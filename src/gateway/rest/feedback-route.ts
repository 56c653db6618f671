/** What clients said of answers, as a route. */

import { create } from "@bufbuild/protobuf";
import { ListFeedbackRequestSchema, ListFeedbackResponseSchema } from "../../gen/holdfast/v1/feedback_pb.ts";
import type { FeedbackService } from "../../service/contract.ts";
import { jsonResponse, messageJson } from "./json.ts";
import { parametersOf } from "./query.ts";
import type { Route } from "./route.ts";

/** The route of a session's feedback. */
export function feedbackRoute(feedback: FeedbackService): Route {
  return {
    operationId: "listFeedback",
    method: "GET",
    path: "/v1/sessions/{uid}/feedback",
    summary: "List what clients said of a session's answers",
    description: "In the order in which it came.",
    query: parametersOf(ListFeedbackRequestSchema, {
      after: "The `place` of the last entry of the page before; 0 for the first page.",
      page_size: "Entries of a page: 0 is 50, more than 500 is 500.",
    }),
    answers: [{ kind: "message", status: 200, schema: ListFeedbackResponseSchema, description: "A page of feedback." }],
    async handle({ uid, query, context }) {
      const request = create(ListFeedbackRequestSchema, {
        session: uid,
        after: query.int64("after") ?? 0n,
        pageSize: query.int32("page_size") ?? 0,
      });
      return jsonResponse(messageJson(ListFeedbackResponseSchema, await feedback.listFeedback(request, context)));
    },
  };
}
