/**
 * How a call's requests come in: refused before they are read, within a time, and within a share of memory.
 *
 * grpc-js collects a message of any client until it is whole, and shows it to nobody before. This interceptor stands between it and
 * the handlers.
 *
 * Invariants:
 * - No byte of a message is read before its caller was let in.
 * - A message that is too large is refused when its length has come, and in our words.
 * - Behind a status nothing is sent, whoever gave it: grpc-js does for a deadline, and for what cannot be decompressed.
 * - A request that was begun ends: with its last byte, or with a status. One that its client leaves unfinished is none.
 * - A call that was refused is gone within the time of a request, also where its client reads nothing, and so no status.
 */

import { constants } from "node:http2";
import { Duplex } from "node:stream";
import { Metadata, ServerInterceptingCall, type ServerInterceptingCallInterface, type ServerInterceptor } from "@grpc/grpc-js";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import type { Log } from "../../base/ports.ts";
import { statusOf } from "../../grpc/index.ts";
import { Arrivals, type Arrival } from "../arrivals.ts";
import { reported } from "../fault.ts";
import type { GatewayLimits } from "../limits.ts";
import { isPublic, type Admission } from "./admission.ts";
import { FrameMeter, type FrameFault } from "./meter.ts";

/** What a door receives with. */
interface ReceivingDoor {
  readonly admission: Admission;
  readonly limits: GatewayLimits;
  readonly log: Log;
  /** What a call that is not let in is told before its status, where its protocol has a message for that. */
  readonly lastWord?: ((path: string, error: HoldfastError) => Uint8Array | undefined) | undefined;
}

/** Receives the calls of one server. It must be the first of the interceptors: the one next to the connection. */
export function receiving(door: ReceivingDoor): ServerInterceptor {
  const arrivals = new Arrivals(door.limits.arrivingBytesMax);
  return (method, call) => {
    const reception = new Reception(call, { ...door, arrivals, path: method.path, isSingle: !method.requestStream });
    return new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, proceed) => {
            if (reception.begin(metadata)) proceed(metadata);
          },
          onReceiveMessage: (message: Uint8Array, proceed) => {
            if (reception.received(message.length)) proceed(message);
          },
          onReceiveHalfClose: (proceed) => {
            if (reception.ended()) proceed();
          },
          onCancel: () => reception.end(),
        }),
      // What the handler still says behind a status would break the stream before that has left.
      sendMetadata: (metadata, next) => (reception.isAnswered ? undefined : next(metadata)),
      sendMessage: (message, next) => (reception.isAnswered ? undefined : next(message)),
      sendStatus: (status, next) => (reception.isAnswered ? undefined : next(status)),
    });
  };
}

interface ReceptionOptions extends ReceivingDoor {
  /** Whether the call has one request; it is not served before the client has ended its side. */
  readonly isSingle: boolean;
  readonly path: string;
  readonly arrivals: Arrivals;
}

/** The requests of one call. */
class Reception {
  readonly #call: ServerInterceptingCallInterface;
  readonly #options: ReceptionOptions;
  readonly #meter: FrameMeter;
  readonly #bytesMax: number;
  #arrival: Arrival | undefined;
  #arrivingBytes = 0;
  #timeout: NodeJS.Timeout | undefined;
  #leave: () => void = () => undefined;
  #isOver = false;

  constructor(call: ServerInterceptingCallInterface, options: ReceptionOptions) {
    this.#call = call;
    this.#options = options;
    const { requestBytesMax, publicRequestBytesMax } = options.limits;
    this.#bytesMax = isPublic(options.path) ? Math.min(publicRequestBytesMax, requestBytesMax) : requestBytesMax;
    this.#meter = new FrameMeter({ bytesMax: this.#bytesMax, mayBeCompressed: isEncoded(call) });
  }

  /** Whether a status is on its way, or the client is gone. */
  get isAnswered(): boolean {
    return this.#isOver || streamOf(this.#call)?.writableEnded === true;
  }

  /** The metadata are there. False when the call was refused. */
  begin(metadata: Metadata): boolean {
    const { isSingle, path, admission, log, lastWord } = this.#options;
    try {
      admission.admit(path, metadata);
    } catch (error) {
      const fault = reported(error, path, log);
      this.#refuse(fault, lastWord?.(path, fault));
      return false;
    }
    if (isPublic(path)) this.#leave = admission.openPublic((error) => this.#refuse(error));
    if (isSingle) this.#setTimeout();
    // Before grpc-js's own listener, or a message that is too large would be refused in its words.
    streamOf(this.#call)?.prependListener("data", (chunk: Uint8Array) => this.#onChunk(chunk));
    return true;
  }

  /** A message is whole, and decompressed: a small one may have become large. False when the call was refused. */
  received(bytes: number): boolean {
    if (bytes > this.#bytesMax) this.#refuse(tooLarge(this.#bytesMax));
    else if (this.#options.isSingle && bytes > this.#arrivingBytes) this.#keep(bytes - this.#arrivingBytes);
    return !this.#isOver;
  }

  /** The client has ended its side. False when the call was refused: it broke off within a message. */
  ended(): boolean {
    if (this.#meter.isPartial) this.#refuse(invalidArgument("request", "must be whole: it was broken off within a message"));
    else this.#arrived();
    return !this.#isOver;
  }

  /** Every message is whole. */
  #arrived(): void {
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
    this.#arrival?.end();
    this.#arrival = undefined;
    this.#arrivingBytes = 0;
  }

  /** The call was answered, or its client is gone. */
  end(): void {
    this.#isOver = true;
    this.#arrived();
    this.#leave();
  }

  #onChunk(chunk: Uint8Array): void {
    if (this.#isOver) return;
    const { fault, completed } = this.#meter.push(chunk);
    if (fault !== undefined) return this.#refuse(this.#faultOf(fault));
    // What is whole is the handler's. A single request is not handed over before its client has ended its side.
    if (completed && !this.#options.isSingle) this.#arrived();
    if (!this.#meter.isPartial && !this.#options.isSingle) return;
    if (this.#timeout === undefined) this.#setTimeout();
    this.#keep(chunk.length);
  }

  #faultOf(fault: FrameFault): HoldfastError {
    switch (fault) {
      case "oversize":
        return tooLarge(this.#bytesMax);
      case "flag":
        return invalidArgument("request", "must begin with 0, or with 1 where it is compressed as the call's grpc-encoding says");
    }
  }

  #keep(bytes: number): void {
    this.#arrivingBytes += bytes;
    this.#arrival ??= this.#options.arrivals.begin((error) => this.#refuse(error));
    this.#arrival.add(bytes);
  }

  #setTimeout(): void {
    const { requestTimeoutMs } = this.#options.limits;
    this.#timeout = setTimeout(() => {
      const message = `request: must arrive within ${requestTimeoutMs} ms`;
      this.#refuse(new HoldfastError("deadline_exceeded", message, { field: "request" }));
    }, requestTimeoutMs);
    this.#timeout.unref();
  }

  #refuse(error: HoldfastError, lastWord?: Uint8Array): void {
    if (this.#isOver) return;
    this.end();
    this.#cutOffLate();
    if (lastWord === undefined) return this.#close(error);
    this.#call.sendMetadata(new Metadata());
    this.#call.sendMessage(lastWord, () => this.#close(error));
  }

  /** What was said before, and the status behind it, leave as the client reads; the stream is closed then, and this forgotten. */
  #cutOffLate(): void {
    const stream = streamOf(this.#call);
    this.#timeout = setTimeout(() => stream?.close?.(constants.NGHTTP2_CANCEL), this.#options.limits.requestTimeoutMs);
    this.#timeout.unref();
    stream?.once("close", () => clearTimeout(this.#timeout));
  }

  /** Ends the call with a status. grpc-js would leave the client's side open, and with it the stream, for as long as the client likes. */
  #close(error: HoldfastError): void {
    const stream = streamOf(this.#call);
    const isUnanswered = stream?.headersSent === false;
    const close = (): void => stream?.close?.(constants.NGHTTP2_NO_ERROR);
    this.#call.sendStatus(statusOf(error));
    if (isUnanswered) close();
    else stream?.once("wantTrailers", () => setImmediate(close));
  }
}

function tooLarge(bytesMax: number): HoldfastError {
  return new HoldfastError("resource_exhausted", `request: must have at most ${bytesMax} bytes`, { field: "request" });
}

/** The part of an HTTP/2 stream that is needed here. */
type CallStream = Duplex & { readonly headersSent?: unknown; readonly close?: (code: number) => void };

/**
 * The HTTP/2 stream of a call. No interface of grpc-js has it; where a version keeps it elsewhere, that version's own limits and the
 * time-outs are what is left, and the tests of this module fail.
 */
function streamOf(call: ServerInterceptingCallInterface): CallStream | undefined {
  return "stream" in call && call.stream instanceof Duplex ? call.stream : undefined;
}

/** Whether the call names a compression. grpc-js takes the header away before anybody sees it, and keeps it where no interface has it. */
function isEncoded(call: ServerInterceptingCallInterface): boolean {
  return "incomingEncoding" in call && call.incomingEncoding !== "identity";
}
