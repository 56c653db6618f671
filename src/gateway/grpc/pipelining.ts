/**
 * Streams in flight. By itself grpc-js hands HTTP/2 one message and waits until that has left before it hands over the next, which
 * makes one frame and one write to the socket of every small record. With this interceptor all messages that are ready go at once, and
 * HTTP/2 writes them together: half the cost of a record. What may wait is the outbox's to bound.
 */

import { ServerInterceptingCall, type ServerInterceptingCallInterface, type ServerInterceptor } from "@grpc/grpc-js";
import { asBuffer } from "../../grpc/index.ts";
import { OutgoingMessage } from "./outbox.ts";

/** Takes a stream's messages without waiting for the ones before. */
export const pipelined: ServerInterceptor = (method, call) =>
  method.responseStream ? new PipelinedCall(call) : new ServerInterceptingCall(call);

class PipelinedCall extends ServerInterceptingCall {
  readonly #next: ServerInterceptingCallInterface;

  constructor(next: ServerInterceptingCallInterface) {
    super(next);
    this.#next = next;
  }

  override sendMessage(message: OutgoingMessage, callback: () => void): void {
    this.#next.sendMessage(message, message.onSent);
    callback();
  }
}

/** The bytes of what a handler sent: a unary answer, or a stream's message. */
export function bytesOf(message: Uint8Array | OutgoingMessage): Buffer {
  return asBuffer(message instanceof OutgoingMessage ? message.bytes : message);
}
