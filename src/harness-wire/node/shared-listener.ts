/**
 * One socket for gRPC and for lines over a byte stream: the first byte says which comes. HTTP/2 begins with `P`; a line begins with the
 * length of its first frame, whose first byte is that high for no frame that is taken.
 *
 * Invariants: a connection that says nothing is closed after a while. Nothing of what was read to decide is lost.
 */

import { createServer, type Server, type Socket } from "node:net";
import { HoldfastError } from "../../base/errors.ts";
import type { HarnessAddress } from "./address.ts";

const HTTP2_FIRST_BYTE = 0x50;
/** How long a connection may take to say what it is. */
const FIRST_BYTE_TIMEOUT_MS = 10_000;
/** After how long of silence a connection is probed by the operating system. */
const KEEPALIVE_DELAY_MS = 20_000;

/** Where connections go. */
export interface Receivers {
  readonly grpc: (socket: Socket) => void;
  readonly line: (socket: Socket) => void;
}

/** A listener that is bound. */
export interface SharedListener {
  /** The port; 0 for a unix socket. */
  readonly port: number;
  /** Takes no more connections and drops those that have not said what they are. */
  close(): void;
}

/** Binds `address`. Rejects with UNAVAILABLE where that cannot be done. */
export function listenShared(address: HarnessAddress, receivers: Receivers): Promise<SharedListener> {
  const undecided = new Set<Socket>();
  const server = createServer((socket) => {
    undecided.add(socket);
    decide(socket, receivers, () => undecided.delete(socket));
  });
  const close = (): void => {
    server.close();
    for (const socket of undecided) socket.destroy();
  };
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => {
      reject(new HoldfastError("unavailable", "listen: the address cannot be bound; it may be in use", { cause }));
    });
    const bound = (): void => resolve({ port: portOf(server), close });
    if (address.kind === "unix") server.listen(address.path, bound);
    else server.listen(address.port, address.host.replaceAll(/[[\]]/g, ""), bound);
  });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

function decide(socket: Socket, receivers: Receivers, done: () => void): void {
  tuneSocket(socket);
  socket.on("error", () => socket.destroy());
  socket.setTimeout(FIRST_BYTE_TIMEOUT_MS, () => socket.destroy());
  socket.once("close", done);
  socket.once("readable", () => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    done();
    socket.setTimeout(0);
    socket.removeAllListeners("timeout");
    socket.unshift(chunk);
    if (chunk[0] === HTTP2_FIRST_BYTE) receivers.grpc(socket);
    else receivers.line(socket);
  });
}

/** Small frames go out at once, and a peer that vanished is noticed. */
export function tuneSocket(socket: Socket): void {
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEPALIVE_DELAY_MS);
}
