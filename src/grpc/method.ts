/** Method definitions for grpc-js, made from the generated service descriptors. */

import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import type { MethodDefinition } from "@grpc/grpc-js";
import { asBuffer, deserializerOf, serializerOf, type Encodable } from "./codec.ts";

/** The descriptor of a method whose messages are known, as `Sessions.method.exec` is. */
export type MethodDesc<Input extends DescMessage, Output extends DescMessage> = DescMethod & {
  readonly input: Input;
  readonly output: Output;
};

/** What a client needs of a method. */
export type ClientMethodDefinition<Request, Response> = Pick<
  MethodDefinition<Request, Response>,
  "path" | "requestStream" | "responseStream" | "requestSerialize" | "responseDeserialize"
>;

/** The `:path` of a method. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

function shapeOf(method: DescMethod): { path: string; requestStream: boolean; responseStream: boolean } {
  const { methodKind } = method;
  return {
    path: pathOf(method),
    requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
    responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
  };
}

/** A method as a client calls it: messages in, messages out. */
export function clientMethod<Input extends DescMessage, Output extends DescMessage>(
  method: MethodDesc<Input, Output>,
): ClientMethodDefinition<Encodable<Input>, MessageShape<Output>> {
  return {
    ...shapeOf(method),
    requestSerialize: serializerOf(method.input),
    responseDeserialize: deserializerOf(method.output),
  };
}

/** A method whose responses stay the bytes that they came as. */
export function rawClientMethod<Input extends DescMessage>(
  method: MethodDesc<Input, DescMessage>,
): ClientMethodDefinition<Encodable<Input>, Uint8Array> {
  return { ...shapeOf(method), requestSerialize: serializerOf(method.input), responseDeserialize: (bytes) => bytes };
}

/**
 * A method whose requests and responses are bytes on both sides. Servers use it: grpc-js answers INTERNAL for a request that it
 * cannot decode, where INVALID_ARGUMENT is right, and a record that is stored as bytes is sent as it is.
 */
export function rawMethod(method: DescMethod): MethodDefinition<Uint8Array, Uint8Array> {
  return {
    ...shapeOf(method),
    requestSerialize: asBuffer,
    requestDeserialize: (bytes) => bytes,
    responseSerialize: asBuffer,
    responseDeserialize: (bytes) => bytes,
  };
}
