/** A client of StreamSession that makes its gRPC frames itself, right ones and wrong ones, over an HTTP/2 that a test can break. */

import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders } from "node:http2";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { AgentService, SessionRequestSchema, SessionResponseSchema, type SessionResponse } from "../../../src/gen/roz/v1/agent_pb.ts";
import type { Heard, Saying } from "../../../src/testing/door-client.ts";
import type { Dice } from "../../../src/testing/dice.ts";
import { ChoppedSocket } from "./chopped-socket.ts";

export const STREAM_PATH = `/${AgentService.typeName}/${AgentService.method.streamSession.name}`;
const HEAD_BYTES = 5;

/** A message as gRPC frames it: a byte that says whether it is compressed, four of its length. */
export function framed(message: Uint8Array, { flag = 0, length = message.length } = {}): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(flag, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}

export function requestBytes(request: Saying | undefined): Uint8Array {
  return toBinary(SessionRequestSchema, create(SessionRequestSchema, request === undefined ? {} : { request }));
}

/** One connection. */
export class DoorWire implements Disposable {
  readonly #socket: ChoppedSocket;
  readonly #session: ClientHttp2Session;

  constructor(address: string, dice?: Dice) {
    this.#socket = new ChoppedSocket(address, dice);
    this.#session = connect(`http://${address}`, { createConnection: () => this.#socket });
    this.#session.on("error", () => undefined);
    this.#session.on("goaway", () => undefined);
  }

  open(headers: Readonly<Record<string, string>> = {}): WireStream {
    return new WireStream(
      this.#session.request({
        ":method": "POST",
        ":path": STREAM_PATH,
        "content-type": "application/grpc",
        te: "trailers",
        ...headers,
      }),
    );
  }

  /** Puts bytes among the frames of the connection, and says nothing more. */
  garble(bytes: Uint8Array): void {
    this.#socket.inject(bytes);
    this.#socket.hangUp();
  }

  cut(): void {
    this.#socket.destroy();
    this.#session.destroy();
  }

  [Symbol.dispose](): void {
    this.cut();
  }
}

/** How a stream ended: with a gRPC status, or with none, where its line broke. */
export type WireEnd = { readonly kind: "status"; readonly code: number; readonly message: string } | { readonly kind: "broken" };

/** One stream. */
export class WireStream {
  readonly heard: SessionResponse["response"][] = [];
  end: WireEnd | undefined;
  /** What the answer's header has. */
  headers: IncomingHttpHeaders | undefined;
  readonly #stream: ClientHttp2Stream;
  readonly #waiting = new Set<() => void>();
  #unread = Buffer.alloc(0);
  #trailers: IncomingHttpHeaders | undefined;

  constructor(stream: ClientHttp2Stream) {
    this.#stream = stream;
    stream.on("response", (headers) => {
      this.headers = headers;
      if (headers["grpc-status"] !== undefined) this.#trailers = headers;
    });
    stream.on("trailers", (trailers: IncomingHttpHeaders) => (this.#trailers = trailers));
    stream.on("data", (chunk: Buffer) => this.#read(chunk));
    stream.on("error", () => undefined);
    // The server's side has ended; the client's own is no business of it any more.
    stream.on("end", () => {
      if (this.#trailers !== undefined) this.#over();
      stream.close();
    });
    stream.on("close", () => this.#over());
  }

  /** The session that the stream has; undefined before it has one. */
  get session(): string | undefined {
    return this.all("sessionStarted")[0]?.sessionId;
  }

  all<Case extends Heard>(kind: Case): Extract<SessionResponse["response"], { readonly case: Case }>["value"][] {
    return this.heard.flatMap((each) => (each.case === kind ? [each.value as never] : []));
  }

  /** Writes bytes, as they are. */
  write(bytes: Uint8Array): void {
    if (!this.#stream.destroyed && this.#stream.writable) this.#stream.write(bytes);
  }

  say(request: Saying | undefined): void {
    this.write(framed(requestBytes(request)));
  }

  /** The client's side ends. */
  finish(): void {
    if (!this.#stream.destroyed && this.#stream.writable) this.#stream.end();
  }

  reset(code: number = constants.NGHTTP2_CANCEL): void {
    if (!this.#stream.destroyed) this.#stream.close(code);
  }

  /** Resolves with true once something holds of the stream, and with false when it does not in time. */
  async until(holds: () => boolean, timeoutMs: number): Promise<boolean> {
    if (holds()) return true;
    return new Promise((resolve) => {
      const look = (): void => (holds() ? settle(true) : undefined);
      const timer = setTimeout(() => settle(false), timeoutMs);
      const settle = (held: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(held);
      };
      this.#waiting.add(look);
    });
  }

  #over(): void {
    const code = this.#trailers?.["grpc-status"];
    const message = decodeURIComponent(String(this.#trailers?.["grpc-message"] ?? ""));
    this.end ??= code === undefined ? { kind: "broken" } : { kind: "status", code: Number(code), message };
    this.#wake();
  }

  #read(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    while (this.#unread.length >= HEAD_BYTES) {
      const end = HEAD_BYTES + this.#unread.readUInt32BE(1);
      if (this.#unread.length < end) break;
      this.heard.push(fromBinary(SessionResponseSchema, this.#unread.subarray(HEAD_BYTES, end)).response);
      this.#unread = this.#unread.subarray(end);
    }
    this.#wake();
  }

  #wake(): void {
    for (const look of this.#waiting) look();
  }
}
