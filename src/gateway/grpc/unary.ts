/** Unary calls: one request, one answer, always one. */

import { toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import type { handleUnaryCall, sendUnaryData } from "@grpc/grpc-js";
import { statusOf, type MethodDesc } from "../../grpc/index.ts";
import type { CallContext } from "../../service/contract.ts";
import { reported } from "../fault.ts";
import type { OpenCall, OpenCalls } from "./calls.ts";
import { decodeRequest } from "./wire.ts";

/** A handler of unary calls. */
export type UnaryHandler<Input extends DescMessage, Output extends DescMessage> = (
  request: MessageShape<Input>,
  context: CallContext,
) => Promise<MessageShape<Output>>;

/** The grpc-js handler of a method. */
export function serveUnary<Input extends DescMessage, Output extends DescMessage>(
  calls: OpenCalls,
  method: MethodDesc<Input, Output>,
  handler: UnaryHandler<Input, Output>,
): handleUnaryCall<Uint8Array, Uint8Array> {
  return (call, callback) => {
    const open = calls.open(call);
    void answer(calls, open, callback, async () => {
      const context = open.admit();
      const response = await handler(decodeRequest(method.input, call.request, calls.options.limits.requestPartsMax), context);
      return toBinary(method.output, response);
    });
  };
}

async function answer(
  calls: OpenCalls,
  open: OpenCall,
  callback: sendUnaryData<Uint8Array>,
  work: () => Promise<Uint8Array>,
): Promise<void> {
  try {
    const response = await work();
    if (open.finish()) callback(null, response);
  } catch (error) {
    const status = statusOf(reported(error, open.path, calls.options.log));
    if (open.finish()) callback(status);
  }
}
