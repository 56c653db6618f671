import { serve, type ServerType } from "@hono/node-server";
import { create } from "@bufbuild/protobuf";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/errors.ts";
import { SILENT_LOG } from "../../base/ports.ts";
import {
  ListSessionsResponseSchema,
  SessionSchema,
  type ExecRequest,
  type ListSessionsRequest,
  type Session,
} from "../../gen/agentsessions/v1/session_pb.ts";
import { VerifyResponseSchema } from "../../gen/holdfast/v1/journal_pb.ts";
import type { JournalService, SessionsService } from "../../service/contract.ts";
import { createRestApp, type RestOptions } from "./index.ts";

/** The door alone, over real HTTP. What is behind it is scripted, so that every fault can be made to happen. */

interface Door {
  readonly url: string;
  readonly port: number;
}

interface Script {
  readonly sessions?: Partial<SessionsService>;
  readonly journal?: Partial<JournalService>;
  readonly options?: Partial<RestOptions>;
}

const listening: ServerType[] = [];
afterEach(async () => {
  for (const server of listening.splice(0)) {
    const closed = new Promise((resolve) => server.close(resolve));
    if ("closeAllConnections" in server) server.closeAllConnections();
    await closed;
  }
});

async function openDoor(script: Script): Promise<Door> {
  const app = createRestApp({
    toolCalls: {} as never,
    turns: {} as never,
    sessions: { ...script.sessions } as SessionsService,
    journal: { ...script.journal } as JournalService,
    health: { ready: () => Promise.resolve(), closing: new AbortController().signal },
    log: SILENT_LOG,
    authenticate: () => ({ identity: undefined }),
    loopbackOnly: true,
    ...script.options,
  });
  const server = await new Promise<ServerType>((resolve) => {
    const started = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0, overrideGlobalObjects: false }, () => resolve(started));
  });
  listening.push(server);
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port };
}

const session = (uid = "u-1"): Session => create(SessionSchema, { metadata: { uid }, harness: "echo", lastSeq: 3n });

/** A body of exactly so many bytes. */
const bodyOf = (bytes: number): string => `{"session":{"harness":"${"x".repeat(bytes - 26)}"}}`;

const post = (body: string, type = "application/json"): RequestInit => ({ method: "POST", body, headers: { "content-type": type } });

async function problem(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  return (await response.json()) as Record<string, unknown>;
}

describe("a unary call", () => {
  it("answers a message as proto3 JSON in original field names, int64 as text", async () => {
    const door = await openDoor({ sessions: { getSession: async ({ uid }) => session(uid) } });
    const response = await fetch(`${door.url}/v1/sessions/u%201`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(await response.json()).toEqual({ metadata: { uid: "u 1" }, harness: "echo", last_seq: "3" });
  });

  it("says where a created session is", async () => {
    const door = await openDoor({ sessions: { createSession: async () => session("a/b") } });
    const response = await fetch(`${door.url}/v1/sessions`, post('{"session":{"harness":"echo"}}'));
    expect([response.status, response.headers.get("location")]).toEqual([201, "/v1/sessions/a%2Fb"]);
  });

  it("reads the query of a listing and answers its page", async () => {
    const asked: ListSessionsRequest[] = [];
    const door = await openDoor({
      sessions: {
        listSessions: async (request) => {
          asked.push(request);
          return create(ListSessionsResponseSchema, { sessions: [session()], nextPageToken: "t" });
        },
      },
    });
    const response = await fetch(`${door.url}/v1/sessions?project=p&page_size=7&pageToken=x%20y`);
    expect(await response.json()).toMatchObject({ sessions: [{ metadata: { uid: "u-1" } }], next_page_token: "t" });
    expect(asked[0]).toMatchObject({ project: "p", pageSize: 7, pageToken: "x y" });
  });

  it("answers HEAD like GET, without the body", async () => {
    const door = await openDoor({ sessions: { getSession: async () => session() } });
    const response = await fetch(`${door.url}/v1/sessions/u-1`, { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });

  it("takes an empty body as an empty message", async () => {
    const door = await openDoor({ sessions: { cancel: async (request) => session(request.session) } });
    const response = await fetch(`${door.url}/v1/sessions/u-1/cancel`, { method: "POST" });
    expect(await response.json()).toMatchObject({ metadata: { uid: "u-1" } });
  });
});

describe("a fault", () => {
  it("is a problem document from the one table of codes", async () => {
    const door = await openDoor({
      sessions: {
        getSession: async () => {
          throw new HoldfastError("not_found", "session: there is none with this uid", { field: "uid" });
        },
      },
    });
    const response = await fetch(`${door.url}/v1/sessions/x`);
    expect(response.status).toBe(404);
    expect(await problem(response)).toEqual({
      type: "urn:holdfast:error:not_found",
      title: "Not found",
      status: 404,
      detail: "session: there is none with this uid",
      code: "not_found",
      field: "uid",
    });
  });

  it("tells nothing of what was not meant for the caller", async () => {
    const door = await openDoor({
      sessions: {
        getSession: async () => {
          throw new Error("secret path /var/lib");
        },
      },
    });
    const response = await fetch(`${door.url}/v1/sessions/x`);
    expect(response.status).toBe(500);
    expect(JSON.stringify(await problem(response))).not.toContain("secret");
  });

  it("says when to retry", async () => {
    const door = await openDoor({
      sessions: {
        getSession: async () => {
          throw new HoldfastError("unavailable", "the journal is busy");
        },
      },
    });
    const response = await fetch(`${door.url}/v1/sessions/x`);
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
  });
});

describe("a request that HTTP itself refuses", () => {
  it.each([
    ["an unknown route", "GET", "/v2/sessions", undefined, 404, "not_found"],
    ["a wrong method", "PUT", "/v1/sessions", undefined, 405, "unimplemented"],
    ["a body that is no JSON by its type", "POST", "/v1/sessions", ["{}", "text/plain"], 415, "invalid_argument"],
    ["a body in another charset", "POST", "/v1/sessions", ["{}", "application/json; charset=latin1"], 415, "invalid_argument"],
    ["a body that is cut", "POST", "/v1/sessions", ['{"session":', "application/json"], 400, "invalid_argument"],
    ["a body that is no object", "POST", "/v1/sessions", ["[]", "application/json"], 400, "invalid_argument"],
  ] as const)("%s", async (_, method, path, body, status, code) => {
    const door = await openDoor({});
    const init = body === undefined ? { method } : { ...post(body[0], body[1]), method };
    const response = await fetch(`${door.url}${path}`, init);
    expect(response.status).toBe(status);
    expect(await problem(response)).toMatchObject({ status, code });
  });

  it("names the methods that a path has", async () => {
    const door = await openDoor({});
    const response = await fetch(`${door.url}/v1/sessions/u`, { method: "PATCH" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, DELETE"]);
  });

  it("takes a body of exactly the limit and refuses one byte more, however it is sent", async () => {
    const limit = 1000;
    const door = await openDoor({
      sessions: { createSession: async () => session() },
      options: { limits: { requestBytesMax: limit } },
    });
    expect(bodyOf(limit)).toHaveLength(limit);
    expect((await fetch(`${door.url}/v1/sessions`, post(bodyOf(limit)))).status).toBe(201);
    const refused = await fetch(`${door.url}/v1/sessions`, post(bodyOf(limit + 1)));
    expect([refused.status, await problem(refused)]).toMatchObject([413, { code: "resource_exhausted", field: "body" }]);
    const chunked = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(new Uint8Array(600).fill(32));
      },
    });
    const streamed = await fetch(`${door.url}/v1/sessions`, { ...post(""), body: chunked, duplex: "half" });
    expect(streamed.status).toBe(413);
  });

  it.each([
    ["values of a list", (parts: number) => `{"inputs":[${"0,".repeat(parts - 3)}0]}`],
    ["keys of an object", (parts: number) => `{"a":{${'"":"",'.repeat((parts - 4) / 2)}"":""}}`],
    ["lists in lists", (parts: number) => `{"a":${"[".repeat(parts - 2)}`],
    ["objects in a list, after a text with all of it", (parts: number) => `{"a\\"[{:,":[${"{},".repeat((parts - 4) / 2)}{}]}`],
  ])("counts the parts of a body before it is decoded, as many as are allowed and not one more: %s", async (_, bodyWith) => {
    const door = await openDoor({ options: { limits: { requestPartsMax: 100 } } });
    const fits = await fetch(`${door.url}/v1/exec`, post(bodyWith(100)));
    expect(fits.status).toBe(400);
    const refused = await fetch(`${door.url}/v1/exec`, post(bodyWith(100).replace("{", "{,")));
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([413, null]);
    expect(await problem(refused)).toMatchObject({
      code: "resource_exhausted",
      field: "body",
      detail: expect.stringContaining("100") as string,
    });
  });

  it("refuses a caller that cannot be authenticated, except on the health routes", async () => {
    const door = await openDoor({
      options: {
        loopbackOnly: false,
        authenticate: (authorization) => {
          if (authorization !== "Bearer right") throw new HoldfastError("unauthenticated", "authorization: must be a bearer token");
          return { identity: undefined };
        },
      },
      sessions: { getSession: async () => session() },
    });
    const refused = await fetch(`${door.url}/v1/sessions/u`);
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect((await fetch(`${door.url}/v1/sessions/u`, { headers: { authorization: "Bearer right" } })).status).toBe(200);
    expect((await fetch(`${door.url}/healthz`)).status).toBe(200);
  });
});

describe("a field that is wrong", () => {
  it.each([
    ["unknown", "/v1/sessions", '{"session":{"colour":"red"}}', "session.colour"],
    ["unknown at the top", "/v1/exec", '{"sesion":"u"}', "sesion"],
    ["of another type", "/v1/exec", '{"inputs":[{"role":"user"},{"role":7}]}', "inputs[1].role"],
    ["no list", "/v1/exec", '{"inputs":{"role":"user"}}', "inputs"],
    ["no object", "/v1/exec", '{"inputs":["hello"]}', "inputs[0]"],
    ["deep inside", "/v1/exec", '{"inputs":[{"parts":[{"text":{"txt":"x"}}]}]}', "inputs[0].parts[0].text.txt"],
    ["too large for its type", "/v1/exec", '{"expected_last_seq":"9223372036854775808"}', "expected_last_seq"],
    ["no base64", "/v1/exec", '{"config":"!"}', "config"],
    ["two of one choice", "/v1/exec", '{"inputs":[{"parts":[{"text":{"text":"x"},"data":{}}]}]}', "inputs[0].parts[0].data"],
    ["no time", "/v1/sessions", '{"session":{"metadata":{"create_time":"yesterday"}}}', "session.metadata.create_time"],
    ["no text in a map", "/v1/sessions", '{"session":{"labels":{"a":1}}}', "session.labels"],
    ["an unknown word", "/v1/sessions", '{"session":{"exec_state":"EXEC_DREAMING"}}', "session.exec_state"],
    ["another session than the path's", "/v1/sessions/u/exec", '{"session":"v"}', "session"],
  ])("%s is named with its whole path", async (_, path, body, field) => {
    const door = await openDoor({});
    const response = await fetch(`${door.url}${path}`, post(body));
    const refused = await problem(response);
    expect([response.status, refused["field"]]).toEqual([400, field]);
    expect(refused["detail"]).toContain(field);
  });

  it("far down among many is found without reading everything above it again and again", async () => {
    const door = await openDoor({});
    const depth = 15;
    const many = `${'{"text":{"text":""}},'.repeat(15_000)}{"x":1}`;
    const body = `{"inputs":[{"parts":[${'{"reasoning":{"summary":['.repeat(depth)}${many}${"]}}".repeat(depth)}]}]}`;
    const before = performance.now();
    const refused = await problem(await fetch(`${door.url}/v1/exec`, post(body)));
    expect(refused["field"]).toBe(`inputs[0].parts[0]${".reasoning.summary[0]".repeat(depth - 1)}.reasoning.summary[15000].x`);
    // Once is some 30 ms; once for each level was above 700.
    expect(performance.now() - before).toBeLessThan(500);
  });

  it("of a body nested without end is refused, in bounded time", async () => {
    const door = await openDoor({});
    const deep = `{"inputs":[{"parts":[${'{"reasoning":{"summary":['.repeat(10_000)}${"]}}".repeat(10_000)}]}]}`;
    expect((await fetch(`${door.url}/v1/exec`, post(deep))).status).toBe(400);
  });

  it.each([
    ["/v1/sessions?page_size=many", "page_size"],
    ["/v1/sessions?page_size=2147483648", "page_size"],
    ["/v1/sessions?project=a&project=b", "project"],
    ["/v1/sessions?colour=red", "colour"],
    ["/v1/sessions/u/records?from_seq=0x1", "from_seq"],
    ["/v1/sessions/u/records?limit=-1", "limit"],
    ["/v1/sessions/u/records?until=head", "until"],
    ["/v1/sessions/u/verify?deep=true", "deep"],
  ])("%s is named in a query", async (path, field) => {
    const door = await openDoor({});
    const response = await fetch(`${door.url}${path}`);
    expect([response.status, await problem(response)]).toMatchObject([400, { field }]);
  });

  it.each([
    ["until=never", {}, "until"],
    ["to_seq=3", {}, "to_seq"],
    ["", { "last-event-id": "abc" }, "Last-Event-ID"],
  ])("%s is named for an event stream", async (query, headers, field) => {
    const door = await openDoor({});
    const response = await fetch(`${door.url}/v1/sessions/u/records?${query}`, { headers: { accept: "text/event-stream", ...headers } });
    expect([response.status, await problem(response)]).toMatchObject([400, { field }]);
  });

  it("in both spellings is read", async () => {
    const asked: ExecRequest[] = [];
    const door = await openDoor({
      sessions: {
        exec: async function* (request) {
          asked.push(request);
          yield { kind: "session", session: session() };
        },
      },
    });
    await (await fetch(`${door.url}/v1/exec`, post('{"expected_last_seq":0,"deadlineUnix":"5"}'))).text();
    expect(asked[0]).toMatchObject({ expectedLastSeq: 0n, deadlineUnix: 5n });
  });
});

describe("health", () => {
  it("says that the process is alive, that it is Holdfast, and whether it can serve", async () => {
    const faults: HoldfastError[] = [];
    const health = {
      ready: async () => {
        for (const fault of faults) throw fault;
      },
      closing: new AbortController().signal,
    };
    const door = await openDoor({ options: { health } });
    expect(await (await fetch(`${door.url}/healthz`)).json()).toEqual({ server: "holdfast", status: "ok" });
    expect((await fetch(`${door.url}/readyz`)).status).toBe(200);
    faults.push(new HoldfastError("unavailable", "the journal cannot be written"));
    const response = await fetch(`${door.url}/readyz`);
    expect([response.status, await problem(response)]).toMatchObject([503, { detail: "the journal cannot be written" }]);
    expect((await fetch(`${door.url}/healthz`)).status).toBe(200);
  });
});

describe("a verification", () => {
  it("is an answer whether the chain is intact or not", async () => {
    const door = await openDoor({
      journal: {
        verify: async () => create(VerifyResponseSchema, { records: 4n, fault: { seq: 3n, kind: 2, expected: "a", found: "b" } }),
      },
    });
    const response = await fetch(`${door.url}/v1/sessions/u/verify`);
    expect([response.status, await response.json()]).toEqual([
      200,
      { records: "4", fault: { seq: "3", kind: "KIND_PREV_HASH", expected: "a", found: "b" } },
    ]);
  });
});
