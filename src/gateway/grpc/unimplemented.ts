/** Methods that the protocols have and this version does not serve: they answer so, instead of not being there. */

import type { DescMethod } from "@bufbuild/protobuf";
import type { UntypedHandleCall } from "@grpc/grpc-js";
import { HoldfastError } from "../../base/errors.ts";
import { statusOf, type OutgoingStatus } from "../../grpc/index.ts";

/** The grpc-js handler of a method that is not served. */
export function unimplemented(method: DescMethod): UntypedHandleCall {
  const status = statusOf(new HoldfastError("unimplemented", `${method.name}: is not served by this version of the server`));
  const isStreamed = method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming";
  return isStreamed ? (call: ErrorSink) => void call.emit("error", status) : (_call: unknown, callback: Callback) => callback(status);
}

interface ErrorSink {
  emit(event: "error", status: OutgoingStatus): boolean;
}

type Callback = (status: OutgoingStatus) => void;
