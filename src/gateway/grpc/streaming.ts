/** Server-streaming calls: one request, a stream of messages, one status. */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { handleServerStreamingCall } from "@grpc/grpc-js";
import { statusOf, type MethodDesc } from "../../grpc/index.ts";
import type { CallContext } from "../../service/contract.ts";
import { reported } from "../fault.ts";
import { Pace } from "../pace.ts";
import type { OpenCall, OpenCalls } from "./calls.ts";
import { Outbox, type MessageSink, type OutgoingMessage } from "./outbox.ts";
import { decodeRequest } from "./wire.ts";

/** A handler of server-streaming calls. Its items are encoded one by one, a page of records message by message. */
export interface StreamHandler<Input extends DescMessage, Item> {
  readonly open: (request: MessageShape<Input>, context: CallContext) => AsyncIterable<Item>;
  /** The encoded messages of an item. */
  readonly encode: (item: Item) => Iterable<Uint8Array>;
  /** Whether the stream ends by itself when the server closes. */
  readonly endsItself?: boolean | undefined;
}

/** The side of a call that messages are written to. */
interface Writer extends MessageSink {
  end(): unknown;
  emit(event: "error", status: ReturnType<typeof statusOf>): boolean;
}

/** The grpc-js handler of a method. */
export function serveStream<Input extends DescMessage, Item>(
  calls: OpenCalls,
  method: MethodDesc<Input, DescMessage>,
  handler: StreamHandler<Input, Item>,
): handleServerStreamingCall<Uint8Array, OutgoingMessage> {
  return (call) => {
    const open = calls.open(call, handler);
    const start = (): AsyncIterable<Item> => {
      const context = open.admit();
      return handler.open(decodeRequest(method.input, call.request, calls.options.limits.requestPartsMax), context);
    };
    void answerStream(calls, open, call, { start, encode: handler.encode });
  };
}

/** Answers an open call with what `start` gives, and with one status. Never rejects. */
export async function answerStream<Item>(
  calls: OpenCalls,
  open: OpenCall,
  call: Writer,
  work: { readonly start: () => AsyncIterable<Item>; readonly encode: (item: Item) => Iterable<Uint8Array> },
): Promise<void> {
  try {
    const outbox = new Outbox(call, calls.options.limits.streamBufferBytesMax, open.signal);
    await pump(work.start(), work.encode, outbox, open.signal);
    open.signal.throwIfAborted();
    if (open.finish()) call.end();
  } catch (error) {
    const status = statusOf(reported(error, open.path, calls.options.log));
    // grpc-js sends the status of an 'error' event after the messages that were written before it.
    if (open.finish()) call.emit("error", status);
  }
}

/** Sends items until the source ends, the reader is gone, or an error. */
async function pump<Item>(
  source: AsyncIterable<Item>,
  encode: (item: Item) => Iterable<Uint8Array>,
  outbox: Outbox,
  signal: AbortSignal,
): Promise<void> {
  const pace = new Pace();
  for await (const item of source) {
    for (const message of encode(item)) {
      if (signal.aborted) return;
      const roomAgain = outbox.send(message);
      if (roomAgain !== undefined) await roomAgain;
      const turn = pace.made(message.length);
      if (turn !== undefined) await turn;
    }
    if (signal.aborted) return;
  }
}
