import { create, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../base/ports.ts";
import { EventKind, LogRecordSchema, ToolResult_Code } from "../../gen/agentsessions/v1/common_pb.ts";
import { ListSessionsRequestSchema, ReplayRequestSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import type { JournalService, SessionsService } from "../../service/contract.ts";
import { createRestApp } from "./index.ts";
import type { OpenApiDocument, Operation } from "./openapi.ts";

const app = createRestApp({
  toolCalls: {} as never,
  turns: {} as never,
  sessions: {} as SessionsService,
  journal: {} as JournalService,
  health: { ready: () => Promise.resolve(), closing: new AbortController().signal },
  log: SILENT_LOG,
  authenticate: () => ({ identity: undefined }),
  loopbackOnly: false,
});
const response = await app.request("/openapi.json");
const document = (await response.json()) as OpenApiDocument;

function operations(): readonly { path: string; method: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

function queryOf(path: string): readonly string[] {
  const { parameters } = document.paths[path]!["get"]!;
  return parameters.filter((parameter) => parameter.in === "query").map((parameter) => parameter.name);
}

/** Every `$ref` in a document, wherever it stands. */
function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === "$ref" ? [String(inner)] : referencesIn(inner)));
}

type Schema = Readonly<Record<string, unknown>>;

/** Where a JSON value is not what a schema says; enough of JSON schema for the schemas that are made here. */
function faultsOf(value: unknown, schema: Schema, path = "$"): string[] {
  if (typeof schema["$ref"] === "string") return faultsOf(value, document.components.schemas[schema["$ref"].split("/").at(-1)!]!, path);
  const { type } = schema;
  if (type === "array") {
    if (!Array.isArray(value)) return [`${path} is no array`];
    return value.flatMap((element, index) => faultsOf(element, schema["items"] as Schema, `${path}[${index}]`));
  }
  if (type === "object") {
    if (typeof value !== "object" || value === null) return [`${path} is no object`];
    const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>;
    const others = schema["additionalProperties"];
    return Object.entries(value).flatMap(([key, inner]) => {
      const property = properties[key] ?? (typeof others === "object" ? (others as Schema) : undefined);
      if (property !== undefined) return faultsOf(inner, property, `${path}.${key}`);
      return others === true ? [] : [`${path}.${key} is not described`];
    });
  }
  if (type === "integer") return Number.isInteger(value) ? [] : [`${path} is no integer`];
  if (typeof value !== type) return [`${path} is no ${String(type)}`];
  if (Array.isArray(schema["enum"]) && !schema["enum"].includes(value)) return [`${path} is no word of the enum`];
  const pattern = schema["pattern"];
  return typeof pattern === "string" && !new RegExp(pattern).test(String(value)) ? [`${path} does not match`] : [];
}

describe("the OpenAPI document", () => {
  it("is OpenAPI 3.1 and lists every route that is mounted, and no other", () => {
    expect(document.openapi).toBe("3.1.0");
    const mounted = app.routes
      .filter((route) => route.method !== "ALL")
      .map((route) => `${route.method} ${route.path.replace(/:(\w+)/g, "{$1}")}`);
    const described = operations().map(({ path, method }) => `${method.toUpperCase()} ${path}`);
    expect(described.toSorted()).toEqual(mounted.toSorted());
    expect(described).toContain("POST /v1/sessions/{uid}/exec");
  });

  it("names each operation once, declares its path's parameters and documents an answer and a problem", () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
      const declared = operation.parameters.filter((parameter) => parameter.in === "path").map((parameter) => parameter.name);
      expect(declared).toEqual(inPath);
      expect(Object.keys(operation.responses)).toEqual([expect.stringMatching(/^20[01]$/), "default"]);
      expect(operation.summary).not.toBe("");
    }
  });

  it("refers to nothing that is not in it", () => {
    const references = new Set(referencesIn(document));
    expect(references.size).toBeGreaterThan(20);
    for (const reference of references) {
      expect(Object.keys(document.components.schemas)).toContain(reference.replace("#/components/schemas/", ""));
    }
  });

  it("takes the queries of calls from their request messages", () => {
    expect(queryOf("/v1/sessions")).toEqual(ListSessionsRequestSchema.fields.map((field) => field.name));
    const ofReplay = ReplayRequestSchema.fields.map((field) => field.name).filter((name) => name !== "session");
    expect(queryOf("/v1/sessions/{uid}/records")).toEqual([...ofReplay, "limit", "until", "omit_deltas"]);
  });

  it("describes records as they are sent", () => {
    const record = create(LogRecordSchema, {
      seq: 9n,
      prevHash: "a",
      contentHash: "b",
      fence: 2n,
      event: {
        executionId: "turn",
        ts: { seconds: 1n, nanos: 5 },
        schemaVersion: 1,
        kind: EventKind.EVENT_TOOL_RESULT,
        actor: { principal: "p" },
        body: {
          case: "result",
          value: {
            id: "call",
            output: { rows: [1, null, "x"] },
            isError: true,
            code: ToolResult_Code.EXECUTOR_ERROR,
            content: [
              { part: { case: "text", value: { text: "t" } } },
              { part: { case: "file", value: { mime: "image/png", source: { case: "bytes", value: new Uint8Array([1]) } } } },
            ],
          },
        },
      },
    });
    const schema = document.components.schemas["agentsessions.v1.LogRecord"]!;
    const json = toJson(LogRecordSchema, record, { useProtoFieldName: true });
    expect(faultsOf(json, schema)).toEqual([]);
    // The check itself can fail: a name that the schema does not know, and an int64 that is no text.
    expect(faultsOf({ seq: 9, sequence: "9" }, schema)).toEqual(["$.seq is no string", "$.sequence is not described"]);
  });

  it("asks for a token everywhere but where none is needed", () => {
    const open = operations().filter(({ operation }) => operation.security !== undefined);
    expect(open.map(({ path }) => path).toSorted()).toEqual(["/healthz", "/openapi.json", "/readyz"]);
  });
});
