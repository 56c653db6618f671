/**
 * What an HTTP/1.1 server refuses by itself, before the application sees a request: as problem documents, like all else.
 *
 * Invariant: a refusal is never in the place of another request's answer, nor inside of one; such a connection is cut off.
 */

import { STATUS_CODES, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { HttpRefusal, problemOf, PROBLEM_TYPE } from "./rest/problem.ts";
import type { GatewayLimits } from "./limits.ts";

/** Makes the server's own refusals problem documents. */
export function refuseInProblems(server: Server, limits: GatewayLimits): void {
  const open = new WeakMap<Duplex, Set<ServerResponse>>();
  server.prependListener("request", ({ socket }, response) => {
    const answers = open.get(socket) ?? new Set();
    open.set(socket, answers.add(response));
    response.once("close", () => answers.delete(response));
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    // The answer would be taken for that of an earlier request whose own is still owed.
    const isOwed = [...(open.get(socket) ?? [])].some((answer) => answer.headersSent || answer.req.complete);
    if (!socket.writable || error.code === "ECONNRESET" || isOwed) socket.destroy();
    else refuseConnection(socket, refusalOf(error, limits));
  });
  server.on("checkExpectation", (_request, response) => {
    refuseRequest(response, new HttpRefusal(417, "invalid_argument", "Expect: must be 100-continue or absent", { field: "Expect" }));
  });
  server.on("connect", (_request, socket) => {
    refuseConnection(socket, new HttpRefusal(405, "unimplemented", "method: CONNECT is not served; this is no proxy"));
  });
}

/** The problem document of a request whose target or host makes no URL. */
export function badTarget(): HttpRefusal {
  return new HttpRefusal(400, "invalid_argument", "request: the Host header and the path must make a URL");
}

/** What Node's parser and its time-outs report. */
function refusalOf({ code }: NodeJS.ErrnoException, limits: GatewayLimits): HttpRefusal {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new HttpRefusal(431, "resource_exhausted", `header: must have at most ${limits.metadataBytesMax} bytes`, { field: "header" });
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new HttpRefusal(413, "resource_exhausted", "body: must have no long chunk extensions", { field: "body" });
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new HttpRefusal(
        408,
        "deadline_exceeded",
        `request: its header must arrive within ${limits.helloTimeoutMs} ms, and all of it within ${limits.requestTimeoutMs} ms`,
      );
    default:
      return new HttpRefusal(400, "invalid_argument", "request: must be HTTP/1.1");
  }
}

function headersOf(refusal: HttpRefusal, body: string): Record<string, string> {
  return {
    "content-type": PROBLEM_TYPE,
    "content-length": String(Buffer.byteLength(body)),
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    ...refusal.headers,
    connection: "close",
  };
}

function refuseRequest(response: ServerResponse, refusal: HttpRefusal): void {
  const body = JSON.stringify(problemOf(refusal));
  response.writeHead(refusal.status, headersOf(refusal, body)).end(body);
}

function refuseConnection(socket: Duplex, refusal: HttpRefusal): void {
  const body = JSON.stringify(problemOf(refusal));
  const headers = Object.entries(headersOf(refusal, body)).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ""}\r\n${headers.join("")}\r\n${body}`);
  // It may go on sending; nobody reads it.
  socket.once("finish", () => socket.destroy());
}
