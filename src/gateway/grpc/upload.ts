/**
 * Client-streaming calls: a stream of requests, one answer.
 *
 * Invariant: a request is decoded when the handler asks for it and not before, so a sender is held up by flow control and not kept
 * in memory. An answer may come before the sender is done; what it still sends is dropped.
 */

import { toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { handleClientStreamingCall, ServerReadableStream } from "@grpc/grpc-js";
import { statusOf, type MethodDesc } from "../../grpc/index.ts";
import type { CallContext } from "../../service/contract.ts";
import { reported } from "../fault.ts";
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
          await handler(requestsOf(method.input, call, open.signal, calls.options.limits.requestPartsMax), context),
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

/** The requests as they come. Ends with the signal's reason when that fires: a sender that went away ends its stream like any other. */
async function* requestsOf<Input extends DescMessage>(
  input: Input,
  call: ServerReadableStream<Uint8Array, Uint8Array>,
  signal: AbortSignal,
  partsMax: number,
): AsyncGenerator<MessageShape<Input>, void, undefined> {
  const messages = call.iterator({ destroyOnReturn: false });
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => undefined);
  const onAbort = (): void => gone.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const next: IteratorResult<Uint8Array, unknown> = await Promise.race([messages.next(), gone.promise]);
      if (next.done === true) return;
      yield decodeRequest(input, next.value, partsMax);
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Only a stream that nobody iterates any more can be drained.
    messages.return?.().catch(() => undefined);
  }
}
