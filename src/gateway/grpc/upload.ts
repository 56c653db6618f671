/**
 * Client-streaming calls: a stream of requests, one answer.
 *
 * Invariant: a request is decoded when the handler asks for it and not before, so a sender is held up by flow control and not kept
 * in memory. An answer may come before the sender is done; what it still sends is dropped.
 */

import { toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { handleClientStreamingCall } from "@grpc/grpc-js";
import { statusOf, type MethodDesc } from "../../grpc/index.ts";
import type { CallContext } from "../../service/contract.ts";
import { reported } from "../fault.ts";
import { arrivingMessages } from "./arriving-messages.ts";
import type { OpenCalls } from "./calls.ts";
import { decodeRequest } from "./wire.ts";

/** A handler of client-streaming calls. */
export type UploadHandler<Input extends DescMessage, Output extends DescMessage> = (
  requests: AsyncIterable<MessageShape<Input>>,
  context: CallContext,
) => Promise<MessageShape<Output>>;

/** The grpc-js handler of a method. */
export function serveUpload<Input extends DescMessage, Output extends DescMessage>(
  calls: OpenCalls,
  method: MethodDesc<Input, Output>,
  handler: UploadHandler<Input, Output>,
): handleClientStreamingCall<Uint8Array, Uint8Array> {
  return (call, callback) => {
    const open = calls.open(call);
    const answer = async (): Promise<void> => {
      try {
        const context = open.admit();
        const response = toBinary(
          method.output,
          await handler(decoded(method.input, arrivingMessages(call, open.signal), calls.options.limits.requestPartsMax), context),
        );
        open.signal.throwIfAborted();
        if (open.finish()) callback(null, response);
      } catch (error) {
        const status = statusOf(reported(error, open.path, calls.options.log));
        if (open.finish()) callback(status);
      } finally {
        call.resume();
      }
    };
    void answer();
  };
}

async function* decoded<Input extends DescMessage>(
  input: Input,
  messages: AsyncIterable<Uint8Array>,
  partsMax: number,
): AsyncGenerator<MessageShape<Input>, void, undefined> {
  for await (const message of messages) yield decodeRequest(input, message, partsMax);
}
