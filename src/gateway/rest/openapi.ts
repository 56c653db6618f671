/**
 * The OpenAPI 3.1 document. It is made from the table of routes and the protocol's own descriptors when the server starts, so
 * it says what is served and nothing else.
 */

import { ERROR_CODES, type ErrorCode } from "../../base/errors.ts";
import { LogRecordSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { PROBLEM_TYPE } from "./problem.ts";
import type { QueryType } from "./query.ts";
import type { Answer, EventTable, Route } from "./route.ts";
import { messageSchema, reference, type JsonSchema, type SchemaRegistry } from "./schema.ts";
import { SSE_TYPE } from "./sse.ts";

/** An OpenAPI document; it goes out as it is. */
export interface OpenApiDocument {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, unknown>>;
  };
}

/** One operation of a path. */
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, unknown>> };
  readonly responses: Readonly<Record<string, unknown>>;
  readonly security?: readonly [];
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

const DESCRIPTION =
  "Durable agent sessions over plain HTTP: the calls of agentsessions.v1.Sessions and of holdfast.v1 as proto3 JSON in " +
  "original field names. 64-bit integers are strings, fields with their default value are left out, and an unknown field of a " +
  "request is refused. Streams are server-sent events. Errors are problem documents.";

/** The document for a table of routes. */
export function openApiOf(routes: readonly Route[]): OpenApiDocument {
  const registry: SchemaRegistry = new Map();
  registry.set("Problem", problemSchema());
  messageSchema(LogRecordSchema, registry);
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    const path = (paths[route.path] ??= {});
    path[route.method.toLowerCase()] = operationOf(route, registry);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Holdfast", version: "v1", description: DESCRIPTION },
    servers: [{ url: "/" }],
    security: [{}, { bearer: [] }],
    paths,
    components: {
      schemas: Object.fromEntries([...registry].toSorted(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "Needed when the server has a token." } },
    },
  };
}

function operationOf(route: Route, registry: SchemaRegistry): Operation {
  const operation: Operation = {
    operationId: route.operationId,
    summary: route.summary,
    description: route.description,
    parameters: parametersOf(route),
    responses: responsesOf(route, registry),
  };
  return {
    ...operation,
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: false, content: { "application/json": { schema: messageSchema(route.body, registry) } } } }),
    ...(route.open === true ? { security: [] } : {}),
  };
}

const PATH_PARAMETERS = { uid: "The session's uid.", id: "The id of what the path names." };

function parametersOf(route: Route): readonly Parameter[] {
  const parameters: Parameter[] = [];
  for (const [name, description] of Object.entries(PATH_PARAMETERS)) {
    if (!route.path.includes(`{${name}}`)) continue;
    parameters.push({ name, in: "path", required: true, description, schema: { type: "string" } });
  }
  for (const [name, { type, description }] of Object.entries(route.query)) {
    parameters.push({ name, in: "query", required: false, description, schema: querySchema(type) });
  }
  for (const [name, description] of Object.entries(route.headers ?? {})) {
    parameters.push({ name, in: "header", required: false, description, schema: { type: "string" } });
  }
  return parameters;
}

function querySchema(type: QueryType): JsonSchema {
  if (typeof type !== "string") return { type: "string", enum: type };
  switch (type) {
    case "string":
      return { type: "string" };
    case "boolean":
      return { type: "boolean" };
    case "int32":
      return { type: "integer", format: "int32" };
    case "int64":
      return { type: "string", format: "int64", pattern: "^-?[0-9]+$" };
  }
}

/** Answers of one status are one response with a content each: a page of JSON, or events. */
function responsesOf(route: Route, registry: SchemaRegistry): Readonly<Record<string, unknown>> {
  const responses: Record<string, unknown> = {};
  const byStatus = Map.groupBy(route.answers, (answer) => (answer.kind === "message" ? answer.status : 200));
  for (const [status, answers] of byStatus) {
    responses[String(status)] = {
      description: answers.map((answer) => answer.description).join(" Or: "),
      content: Object.fromEntries(answers.map((answer) => contentOf(answer, registry))),
    };
  }
  responses["default"] = { description: "What went wrong.", content: { [PROBLEM_TYPE]: { schema: reference("Problem") } } };
  return responses;
}

function contentOf(answer: Answer, registry: SchemaRegistry): [string, unknown] {
  switch (answer.kind) {
    case "message":
      return ["application/json", { schema: messageSchema(answer.schema, registry) }];
    case "object":
      for (const message of answer.messages ?? []) messageSchema(message, registry);
      return ["application/json", { schema: answer.schema }];
    case "file":
      return [answer.type, { schema: { type: "string", format: "binary" } }];
    case "events": {
      const events = eventSchemas(answer.events, registry);
      return [SSE_TYPE, { schema: { type: "string", description: "Server-sent events." }, "x-events": events }];
    }
  }
}

/** OpenAPI 3.1 has no words for what the data of an event is; this extension says it. */
function eventSchemas({ data, end }: EventTable, registry: SchemaRegistry): JsonSchema {
  const schemas = Object.entries(data).map(([event, message]) => [event, messageSchema(message, registry)] as const);
  return { ...Object.fromEntries(schemas), error: reference("Problem"), end: { type: "object", properties: end } };
}

function problemSchema(): JsonSchema {
  const codes = (Object.keys(ERROR_CODES) as ErrorCode[]).toSorted();
  return {
    type: "object",
    required: ["type", "title", "status", "detail", "code"],
    properties: {
      type: { type: "string", format: "uri" },
      title: { type: "string" },
      status: { type: "integer" },
      detail: { type: "string" },
      code: { type: "string", enum: codes },
      field: { type: "string", description: "The request field that is wrong, where one is." },
    },
  };
}
