import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { create } from "@bufbuild/protobuf";
import { SessionSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { JournalService, SessionsService } from "../service/contract.ts";
import { createHttp1Server } from "./http1.ts";
import type { GatewayLimits } from "./limits.ts";
import { createRestApp } from "./rest/index.ts";

interface DoorOptions {
  readonly limits?: Partial<GatewayLimits>;
  readonly sessions?: Partial<SessionsService>;
  readonly loopbackOnly?: boolean;
}

/** The REST door behind its HTTP server, on a port of its own. */
async function openDoor({ limits = {}, sessions = {}, loopbackOnly = true }: DoorOptions = {}): Promise<number> {
  const app = createRestApp({
    toolCalls: {} as never,
    turns: {} as never,
    sessions: { createSession: async () => create(SessionSchema), ...sessions } as SessionsService,
    journal: {} as JournalService,
    health: { ready: () => Promise.resolve(), closing: new AbortController().signal },
    log: SILENT_LOG,
    authenticate: () => ({ identity: undefined }),
    loopbackOnly,
    limits,
  });
  const door = createHttp1Server(app, limits);
  const listener = createServer({ allowHalfOpen: true }, (socket) => door.accept(socket));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    listener.close();
    await door.close(0);
  });
  return (listener.address() as AddressInfo).port;
}

function dial(port: number): Socket {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true });
  socket.on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket;
}

interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  readonly problem: { readonly status?: number; readonly code?: string; readonly field?: string; readonly detail?: string };
}

/** The one answer that a connection gets, until the server ends it. */
async function answerOf(socket: Socket): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const [head = "", body = ""] = Buffer.concat(chunks).toString("utf8").split("\r\n\r\n");
  const type = /^content-type: (.*)$/im.exec(head)?.[1];
  return { status: Number(head.split(" ")[1]), type, problem: body === "" ? {} : (JSON.parse(body) as Answer["problem"]) };
}

const JSON_POST = "POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n";
const CLOSE = "host: localhost\r\nconnection: close\r\n\r\n";

describe("what HTTP refuses by itself is a problem document", () => {
  it.each([
    ["no HTTP", "hello\r\n\r\n", 400, "invalid_argument"],
    ["a wrong version", `GET / HTTP/7.9\r\n${CLOSE}`, 400, "invalid_argument"],
    ["a header without an end", `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"x".repeat(17_000)}\r\n`, 431, "resource_exhausted"],
    ["no host", "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n", 400, "invalid_argument"],
    ["two lengths", `${JSON_POST}content-length: 1\r\ncontent-length: 2\r\n\r\n`, 400, "invalid_argument"],
    ["a chunk that is none", `${JSON_POST}transfer-encoding: chunked\r\n\r\nzz\r\n`, 400, "invalid_argument"],
    ["an expectation", `GET / HTTP/1.1\r\nexpect: wonders\r\n${CLOSE}`, 417, "invalid_argument"],
    ["a proxy's method", `CONNECT localhost:80 HTTP/1.1\r\n${CLOSE}`, 405, "unimplemented"],
    ["a question to the server as such", `OPTIONS * HTTP/1.1\r\n${CLOSE}`, 400, "invalid_argument"],
    ["a path that is none", `GET a/b HTTP/1.1\r\n${CLOSE}`, 400, "invalid_argument"],
  ])("%s", async (_, request, status, code) => {
    const socket = dial(await openDoor());
    socket.write(request);
    const answer = await answerOf(socket);
    expect(answer).toMatchObject({ status, type: "application/problem+json", problem: { status, code } });
    expect(answer.problem.detail).toContain(":");
  });

  const ODD_HOSTS = ["127.999.1.1", "127.0.0.256", "127.0.0.01", "999.999.999.999", "a b", "::1", "[::1", "a%00.localhost", "<x>"];
  for (const loopbackOnly of [true, false]) {
    it.each(ODD_HOSTS)(`a host that is none, ${loopbackOnly ? "without" : "with"} a token: %s`, async (host) => {
      const port = await openDoor({ loopbackOnly });
      for (const request of [
        `GET /healthz HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`,
        `POST /v1/sessions HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
      ]) {
        const socket = dial(port);
        socket.write(request);
        const answer = await answerOf(socket);
        expect([400, 403, 200, 201]).toContain(answer.status);
        if (loopbackOnly) expect(answer.status).toBeGreaterThanOrEqual(400);
        if (answer.status >= 400) expect(answer.type).toBe("application/problem+json");
      }
    });
  }

  it("but never inside of an answer that has begun: that connection is cut", async () => {
    const socket = dial(
      await openDoor({
        sessions: {
          exec: async function* (_request, { signal }) {
            yield { kind: "session", session: create(SessionSchema) };
            await once(signal, "abort");
          },
        },
      }),
    );
    socket.write(`POST /v1/exec HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    let seen = "";
    for await (const chunk of socket) {
      seen += String(chunk);
      if (seen.includes("event: session")) socket.write("hello\r\n\r\n");
    }
    expect(seen).not.toContain("problem");
  });

  it("nor in the place of the answer that an earlier request is owed", async () => {
    const asked = Promise.withResolvers<void>();
    const getSession = async () => {
      asked.resolve();
      return new Promise<never>(() => undefined);
    };
    const socket = dial(await openDoor({ sessions: { getSession } }));
    socket.write("GET /v1/sessions/u HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await asked.promise;
    socket.write("hello\r\n\r\n");
    expect((await answerOf(socket)).status).toBeNaN();
  });
});

describe("a request that does not arrive", () => {
  it.each([
    ["its header", "GET /healthz HTTP/1.1\r\nhost: localhost\r\n"],
    ["its body", `${JSON_POST}content-length: 100\r\n\r\n{"session"`],
    ["its chunks", `${JSON_POST}transfer-encoding: chunked\r\n\r\n5\r\n{"ses\r\n`],
  ])("is refused after a time, when it lacks %s", async (_, request) => {
    const socket = dial(await openDoor({ limits: { helloTimeoutMs: 100, requestTimeoutMs: 200 } }));
    socket.write(request);
    const answer = await answerOf(socket);
    expect(answer).toMatchObject({ status: 408, type: "application/problem+json", problem: { code: "deadline_exceeded" } });
    expect(answer.problem.detail).toContain("200 ms");
  });

  it("makes room for others when too much of its kind is kept: the oldest is refused", async () => {
    const port = await openDoor({ limits: { arrivingBytesMax: 256 * 1024 } });
    const stalled = [1, 2, 3].map(() => {
      const socket = dial(port);
      socket.write(`${JSON_POST}content-length: 200000\r\n\r\n${"x".repeat(100_000)}`);
      return socket;
    });
    const refused = await Promise.race(stalled.map(answerOf));
    expect(refused).toMatchObject({ status: 429, type: "application/problem+json", problem: { code: "resource_exhausted" } });
    const served = dial(port);
    const body = `{"session":{"harness":"${"x".repeat(100_000)}"}}`;
    served.write(`${JSON_POST}content-length: ${body.length}\r\n\r\n${body}`);
    expect((await answerOf(served)).status).toBe(201);
  });
});

describe("a client that has ended its side", () => {
  it.each([
    ["with its request", `GET /v1/sessions/u HTTP/1.1\r\n${CLOSE}`],
    ["after its body", `POST /v1/sessions/u/cancel HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 2\r\n${CLOSE}{}`],
  ])("still gets its answer, which takes a while: %s", async (_, request) => {
    const asked = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const answer = async () => {
      asked.resolve();
      await go.promise;
      return create(SessionSchema, { harness: "echo" });
    };
    const socket = dial(await openDoor({ sessions: { getSession: answer, cancel: answer } }));
    socket.end(request);
    await asked.promise;
    // The server has seen the end once it has answered a connection that came later.
    await fetch(`http://127.0.0.1:${socket.remotePort}/healthz`);
    go.resolve();
    expect(await answerOf(socket)).toMatchObject({ status: 200, problem: { harness: "echo" } });
  });

  it("is not waited for without end: it may be gone", async () => {
    const gone = Promise.withResolvers<void>();
    const port = await openDoor({
      limits: { halfClosedTimeoutMs: 100 },
      sessions: {
        getSession: async (_request, { signal }) => {
          await once(signal, "abort");
          gone.resolve();
          return create(SessionSchema);
        },
      },
    });
    const socket = dial(port);
    socket.end(`GET /v1/sessions/u HTTP/1.1\r\n${CLOSE}`);
    expect((await answerOf(socket)).status).toBeNaN();
    await gone.promise;
  });
});
