/** Turns that run, as routes. */

import { SteerRequestSchema, SteerResponseSchema } from "../../gen/holdfast/v1/turns_pb.ts";
import type { TurnsService } from "../../service/contract.ts";
import { decodeJsonText } from "./decode.ts";
import { jsonResponse, messageJson } from "./json.ts";
import type { Route } from "./route.ts";
import { pathUid } from "./session-routes.ts";

/** The route of messages for a turn that runs. */
export function steerRoute(turns: TurnsService): Route {
  return {
    operationId: "steer",
    method: "POST",
    path: "/v1/sessions/{uid}/steer",
    summary: "Give a message to the turn that runs",
    description:
      "Answers once the turn's harness has asked for the message and the record of that is durable. A call that is given up takes it back.",
    query: {},
    body: SteerRequestSchema,
    answers: [{ kind: "message", status: 200, schema: SteerResponseSchema, description: "Where the message is." }],
    async handle({ uid, text, context }) {
      const request = decodeJsonText(SteerRequestSchema, text);
      request.session = pathUid(uid, request.session);
      return jsonResponse(messageJson(SteerResponseSchema, await turns.steer(request, context)));
    },
  };
}
