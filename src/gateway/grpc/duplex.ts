/**
 * Calls with streams both ways: requests as they come, responses as they are made, one status.
 *
 * Invariants:
 * - A request is decoded when the handler asks for it and not before, so a sender is held up by flow control and not kept in memory.
 * - What is no request is told to the handler as such: it is the conversation's to answer, and no reason to end it.
 */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { Metadata, type handleBidiStreamingCall, type ServerDuplexStream } from "@grpc/grpc-js";
import { toHoldfastError } from "../../base/errors.ts";
import type { MethodDesc } from "../../grpc/index.ts";
import type { Incoming, StreamContext } from "../../service/contract.ts";
import { arrivingMessages } from "./arriving-messages.ts";
import type { OpenCalls } from "./calls.ts";
import type { OutgoingMessage } from "./outbox.ts";
import { answerStream } from "./streaming.ts";
import { decodeRequest } from "./wire.ts";

/** A handler of calls with streams both ways. */
export interface DuplexHandler<Input extends DescMessage, Item> {
  readonly open: (requests: AsyncIterable<Incoming<MessageShape<Input>>>, context: StreamContext) => AsyncIterable<Item>;
  /** The encoded messages of an item. */
  readonly encode: (item: Item) => Iterable<Uint8Array>;
}

/** The grpc-js handler of a method. */
export function serveDuplex<Input extends DescMessage, Item>(
  calls: OpenCalls,
  method: MethodDesc<Input, DescMessage>,
  handler: DuplexHandler<Input, Item>,
): handleBidiStreamingCall<Uint8Array, OutgoingMessage> {
  return (call) => {
    const open = calls.open(call);
    const start = (): AsyncIterable<Item> => {
      const context = { ...open.admit(), ...headersOf(call) };
      const { requestPartsMax } = calls.options.limits;
      return handler.open(incoming(method.input, arrivingMessages(call, open.signal), requestPartsMax), context);
    };
    void answerStream(calls, open, call, { start, encode: handler.encode }).then(() => call.resume());
  };
}

function headersOf(call: ServerDuplexStream<Uint8Array, OutgoingMessage>): Pick<StreamContext, "metadata" | "announce"> {
  return {
    metadata: (key) => {
      const [value] = call.metadata.get(key);
      return typeof value === "string" ? value : undefined;
    },
    announce: (headers) => {
      const metadata = new Metadata();
      for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
      call.sendMetadata(metadata);
    },
  };
}

async function* incoming<Input extends DescMessage>(
  input: Input,
  messages: AsyncIterable<Uint8Array>,
  partsMax: number,
): AsyncGenerator<Incoming<MessageShape<Input>>, void, undefined> {
  for await (const message of messages) yield decodedOrNot(input, message, partsMax);
}

function decodedOrNot<Input extends DescMessage>(input: Input, message: Uint8Array, partsMax: number): Incoming<MessageShape<Input>> {
  try {
    return { kind: "message", message: decodeRequest(input, message, partsMax) };
  } catch (error) {
    return { kind: "malformed", error: toHoldfastError(error) };
  }
}
