/**
 * The one port. A connection's first bytes say whether it speaks HTTP/2 (gRPC) or HTTP/1.1 (REST, SSE, pages), with or without TLS.
 *
 * Invariants:
 * - A protocol's server gets the connection unread, whatever way its first bytes arrived, one by one too.
 * - A connection that says nothing, or no more than half a preface, is dropped after a time; the number of connections is
 *   bounded; an error of a socket ends that socket and nothing else.
 */

import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { HoldfastError, type Clock, type Log } from "../base/index.ts";
import { GATEWAY_LIMITS, type GatewayLimits } from "./limits.ts";

/** The first bytes of every HTTP/2 connection. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export interface ListenerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** The setting that errors name. Default `listen`. */
  readonly setting?: string | undefined;
  /** Key and certificate chain in PEM; absent for cleartext. */
  readonly tls?: Pick<TlsOptions, "key" | "cert"> | undefined;
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits?: Partial<GatewayLimits> | undefined;
}

/** A port that takes connections. */
export interface Listener {
  readonly host: string;
  readonly port: number;
  /** Connections that are open now. */
  readonly connections: number;
  /** Takes no new connections, and drops those whose protocol is not known yet. The others belong to their protocol's server. */
  stop(): void;
  /** Cuts off every connection that is left, and resolves once the port is free. */
  close(): Promise<void>;
}

/** Opens the port. Rejects with FAILED_PRECONDITION or PERMISSION_DENIED when the system does not give it. */
export async function listen(options: ListenerOptions): Promise<Listener> {
  const limits = { ...GATEWAY_LIMITS, ...options.limits };
  const { log } = options;
  const sockets = new Set<Socket>();
  const undecided = new Set<Socket>();
  const sniff = (socket: Socket): void => {
    undecided.add(socket);
    decideProtocol(socket, { clock: options.clock, timeoutMs: limits.helloTimeoutMs }, (protocol) => {
      undecided.delete(socket);
      if (protocol !== undefined) options[protocol](socket);
    });
  };
  const secured = options.tls === undefined ? undefined : tlsServer(options.tls, limits, sniff);
  // A client may end its side after its request and still want the answer, as HTTP/1.1 allows.
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", (error) => {
      log.log("debug", "a connection failed", { error: error.name });
      socket.destroy();
    });
    if (secured === undefined) sniff(socket);
    else secured.emit("connection", socket);
  });
  server.maxConnections = limits.connectionsMax;
  server.on("drop", () => log.log("warn", "a connection was refused: too many are open", { connectionsMax: limits.connectionsMax }));
  const port = await bind(server, options);
  const closed = new Promise<void>((resolve) => server.once("close", resolve));
  const stop = (): void => {
    if (server.listening) server.close();
    for (const socket of undecided) socket.destroy();
  };
  return {
    host: options.host,
    port,
    get connections() {
      return [...sockets].filter((socket) => !socket.destroyed).length;
    },
    stop,
    async close() {
      stop();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function tlsServer(tls: Pick<TlsOptions, "key" | "cert">, limits: GatewayLimits, secured: (socket: Socket) => void): Server {
  const server = createTlsServer({
    ...tls,
    allowHalfOpen: true,
    minVersion: "TLSv1.2",
    // The first that the client offers too. Those who offer both are HTTP clients, such as curl and browsers, and here HTTP/2 is
    // gRPC only; those who speak gRPC offer h2 alone.
    ALPNProtocols: ["http/1.1", "h2"],
    handshakeTimeout: limits.helloTimeoutMs,
  });
  server.on("secureConnection", (socket) => {
    socket.on("error", () => socket.destroy());
    secured(socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

/** Tells the protocol once it is known and the socket is unread again; undefined when the connection ended or kept silent. */
function decideProtocol(
  socket: Socket,
  { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
  decided: (protocol: "http1" | "http2" | undefined) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const silence = clock.after(timeoutMs, () => socket.destroy());
  const settle = (protocol: "http1" | "http2" | undefined): void => {
    silence.cancel();
    socket.off("data", onData);
    socket.off("end", onEnd);
    socket.off("close", onClose);
    socket.pause();
    if (protocol !== undefined) socket.unshift(seen);
    // An HTTP/2 session over a half-open socket would never learn that its peer is gone.
    if (protocol === "http2") socket.allowHalfOpen = false;
    decided(protocol);
    // HTTP/1.1 waits for 'data'; an HTTP/2 session takes what is buffered by itself.
    if (protocol === "http1") socket.resume();
  };
  const onEnd = (): void => void socket.destroy();
  const onClose = (): void => settle(undefined);
  const onData = (chunk: Buffer): void => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const compared = Math.min(seen.length, PREFACE.length);
    if (seen.compare(PREFACE, 0, compared, 0, compared) !== 0) settle("http1");
    else if (compared === PREFACE.length) settle("http2");
  };
  socket.on("data", onData);
  socket.on("end", onEnd);
  socket.on("close", onClose);
}

async function bind(server: Server, { host, port, setting = "listen" }: ListenerOptions): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(bindError(error, setting)));
    server.listen({ host, port }, resolve);
  });
  server.removeAllListeners("error");
  server.on("error", () => undefined);
  return (server.address() as AddressInfo).port;
}

/** What the system's refusal means to who started the server. */
function bindError(error: NodeJS.ErrnoException, setting: string): HoldfastError {
  const options = { field: setting, cause: error, details: { errno: error.code ?? "" } };
  switch (error.code) {
    case "EADDRINUSE":
      return new HoldfastError(
        "failed_precondition",
        `${setting}: another process uses this port; stop it or choose another port`,
        options,
      );
    case "EACCES":
    case "EPERM":
      return new HoldfastError("permission_denied", `${setting}: this user may not open this port; choose one above 1023`, options);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new HoldfastError("invalid_argument", `${setting}: this machine has no such address`, options);
    default:
      return new HoldfastError("unavailable", `${setting}: the port cannot be opened`, options);
  }
}
