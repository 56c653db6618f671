/** Environments as routes. */

import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../../base/errors.ts";
import {
  CreateEnvironmentRequestSchema,
  DeleteEnvironmentRequestSchema,
  EnvironmentSchema,
  GetEnvironmentRequestSchema,
  ListEnvironmentsRequestSchema,
  ListEnvironmentsResponseSchema,
  UpdateEnvironmentRequestSchema,
  type Environment,
} from "../../gen/holdfast/v1/environments_pb.ts";
import type { EnvironmentsService } from "../../service/contract.ts";
import { decodeJsonText } from "./decode.ts";
import { jsonResponse, messageJson } from "./json.ts";
import { parametersOf } from "./query.ts";
import type { Answer, Route } from "./route.ts";

const COLLECTION = "/api/v1/environments";
const MEMBER = `${COLLECTION}/{id}`;
const ENVIRONMENT = { kind: "message", status: 200, schema: EnvironmentSchema, description: "The environment." } as const satisfies Answer;

/** The routes of environments. */
export function environmentRoutes(environments: EnvironmentsService): readonly Route[] {
  return [...readingRoutes(environments), ...changingRoutes(environments)];
}

function readingRoutes(environments: EnvironmentsService): readonly Route[] {
  return [
    {
      operationId: "listEnvironments",
      method: "GET",
      path: COLLECTION,
      summary: "List the environments",
      description: "By id: those of the host's configuration, and those that were made here.",
      query: parametersOf(ListEnvironmentsRequestSchema, {
        page_size: "Environments of a page: 0 is 50, more than 500 is 500.",
        page_token: "The `next_page_token` of the page before; empty for the first page.",
      }),
      answers: [{ kind: "message", status: 200, schema: ListEnvironmentsResponseSchema, description: "A page of environments." }],
      async handle({ query, context }) {
        const request = create(ListEnvironmentsRequestSchema, {
          pageSize: query.int32("page_size") ?? 0,
          pageToken: query.text("page_token"),
        });
        return jsonResponse(messageJson(ListEnvironmentsResponseSchema, await environments.listEnvironments(request, context)));
      },
    },
    {
      operationId: "getEnvironment",
      method: "GET",
      path: MEMBER,
      summary: "Read an environment",
      description: "The whole of it, with its defaults.",
      query: {},
      answers: [ENVIRONMENT],
      async handle({ id, context }) {
        return answered(await environments.getEnvironment(create(GetEnvironmentRequestSchema, { id }), context));
      },
    },
  ];
}

function changingRoutes(environments: EnvironmentsService): readonly Route[] {
  return [
    {
      operationId: "createEnvironment",
      method: "POST",
      path: COLLECTION,
      summary: "Make an environment",
      description: "What is left out has its default. Output-only fields are passed over.",
      query: {},
      body: CreateEnvironmentRequestSchema,
      answers: [{ ...ENVIRONMENT, status: 201, description: "The new environment; `Location` is its path." }],
      async handle({ text, context }) {
        const environment = await environments.createEnvironment(decodeJsonText(CreateEnvironmentRequestSchema, text), context);
        const location = `${COLLECTION}/${environment.id}`;
        return jsonResponse(messageJson(EnvironmentSchema, environment), { status: 201, headers: { location } });
      },
    },
    {
      operationId: "updateEnvironment",
      method: "PUT",
      path: MEMBER,
      summary: "Replace an environment",
      description:
        "The whole definition; what is left out has its default. `expected_version` is the version that was read: 409 where it has " +
        "changed since. Turns that start from then on go by it.",
      query: {},
      body: UpdateEnvironmentRequestSchema,
      answers: [{ ...ENVIRONMENT, description: "The environment as it is now." }],
      async handle({ id, text, context }) {
        const request = decodeJsonText(UpdateEnvironmentRequestSchema, text);
        if (request.environment !== undefined) request.environment.id = pathId(id, request.environment.id);
        return answered(await environments.updateEnvironment(request, context));
      },
    },
    {
      operationId: "deleteEnvironment",
      method: "DELETE",
      path: MEMBER,
      summary: "Remove an environment",
      description: "Its sessions stay, and take no new turns through it. Its id is free again.",
      query: parametersOf(DeleteEnvironmentRequestSchema, { expected_version: "The version that was read; 0 is any." }),
      answers: [{ ...ENVIRONMENT, description: "The environment as it was." }],
      async handle({ id, query, context }) {
        const request = create(DeleteEnvironmentRequestSchema, { id, expectedVersion: query.int64("expected_version") ?? 0n });
        return answered(await environments.deleteEnvironment(request, context));
      },
    },
  ];
}

function answered(environment: Environment): Response {
  return jsonResponse(messageJson(EnvironmentSchema, environment));
}

/** The path names the environment; a body may repeat it and may not contradict it. */
function pathId(id: string, inBody: string): string {
  if (inBody !== "" && inBody !== id) throw invalidArgument("environment.id", "must be left out, or be the id in the path");
  return id;
}
