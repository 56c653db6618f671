/**
 * The HTTP/1.1 front door: it serves a fetch handler on connections that somebody else accepted.
 *
 * Invariant: a client that ends its side after its request gets its answer, and is not waited for without end: whether it only has
 * nothing more to say or is gone, nobody can tell.
 */

import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import { toHoldfastError } from "../base/errors.ts";
import { GATEWAY_LIMITS, type GatewayLimits } from "./limits.ts";
import { badTarget, refuseInProblems } from "./refusals.ts";
import { problemResponse } from "./rest/problem.ts";

/** How long a connection may be idle between two requests. */
const IDLE_TIMEOUT_MS = 75_000;

/** What answers requests: a Hono application, for one. */
export interface FetchHandler {
  fetch(request: Request, env: object): Response | Promise<Response>;
}

/** An HTTP/1.1 server over sockets that somebody else accepted. */
export interface Http1Server {
  /** Serves a connection, unread. */
  accept(socket: Socket): void;
  /** Ends the server: open requests get `graceMs` to finish, idle connections none. */
  close(graceMs: number): Promise<void>;
}

/** Creates the HTTP/1.1 front door. */
export function createHttp1Server(app: FetchHandler, overrides: Partial<GatewayLimits> = {}): Http1Server {
  const limits = { ...GATEWAY_LIMITS, ...overrides };
  const answer = getRequestListener((request, env) => app.fetch(request, env), {
    overrideGlobalObjects: false,
    errorHandler: (error) => problemResponse(error instanceof RequestError ? badTarget() : toHoldfastError(error)),
  });
  const server: Server & { httpAllowHalfOpen?: boolean } = createServer(
    {
      maxHeaderSize: limits.metadataBytesMax,
      headersTimeout: limits.helloTimeoutMs,
      requestTimeout: Math.max(limits.requestTimeoutMs, limits.helloTimeoutMs),
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      // A request without a host is refused as everything is: with a problem document.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.max(100, Math.min(1_000, limits.helloTimeoutMs / 4)),
    },
    (request, response) => void answer(request, response),
  );
  server.httpAllowHalfOpen = true;
  refuseInProblems(server, limits);
  // Node starts to enforce the time-outs of a server when it listens, and this one never does.
  server.emit("listening");
  const exchanges = countExchanges(server);
  return {
    accept(socket) {
      socket.once("end", () => dropLater(socket, limits.halfClosedTimeoutMs));
      server.emit("connection", socket);
    },
    async close(graceMs) {
      server.close();
      await Promise.race([exchanges.idle(), new Promise<void>((resolve) => setTimeout(resolve, graceMs).unref())]);
      server.closeAllConnections();
    },
  };
}

/** Drops a connection that is still there after a time. */
function dropLater(socket: Socket, timeoutMs: number): void {
  const timeout = setTimeout(() => socket.destroy(), timeoutMs).unref();
  socket.once("close", () => clearTimeout(timeout));
}

/** Counts the requests that have not been answered in full. */
function countExchanges(server: Server): { idle(): Promise<void> } {
  let open = 0;
  let onIdle: () => void = () => undefined;
  server.on("request", (_request, response) => {
    open++;
    response.once("close", () => {
      open--;
      if (open === 0) onIdle();
    });
  });
  return {
    async idle() {
      if (open > 0) await new Promise<void>((resolve) => (onIdle = resolve));
    },
  };
}
