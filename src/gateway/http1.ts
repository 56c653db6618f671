/** The HTTP/1.1 front door: it serves a fetch handler on connections that somebody else accepted. */

import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { GATEWAY_LIMITS, type GatewayLimits } from "./limits.ts";

/** How long a request's body may take to arrive. */
const REQUEST_TIMEOUT_MS = 60_000;
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
  const answer = getRequestListener((request, env) => app.fetch(request, env), { overrideGlobalObjects: false });
  const server = createServer(
    {
      maxHeaderSize: limits.metadataBytesMax,
      headersTimeout: limits.helloTimeoutMs,
      requestTimeout: Math.max(REQUEST_TIMEOUT_MS, limits.helloTimeoutMs),
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      connectionsCheckingInterval: Math.max(100, Math.min(1_000, limits.helloTimeoutMs / 4)),
    },
    (request, response) => void answer(request, response),
  );
  // Node starts to enforce the time-outs of a server when it listens, and this one never does.
  server.emit("listening");
  const exchanges = countExchanges(server);
  return {
    accept: (socket) => void server.emit("connection", socket),
    async close(graceMs) {
      server.close();
      await Promise.race([exchanges.idle(), new Promise<void>((resolve) => setTimeout(resolve, graceMs).unref())]);
      server.closeAllConnections();
    },
  };
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
