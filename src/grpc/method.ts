/** Method definitions for grpc-js, made from the generated service descriptors. */

import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import type { ClientMethodDefinition, ServerMethodDefinition } from "./grpc-js.ts";
import { asBuffer, deserializerOf, serializerOf, type Encodable } from "./codec.ts";

/** The descriptor of a method whose messages are known, as `Sessions.method.exec` is. */
export type MethodDesc<Input extends DescMessage, Output extends DescMessage> = DescMethod & {
  readonly input: Input;
  readonly output: Output;
};

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
 * A method as a server serves it. Requests reach the handler as bytes, because grpc-js answers INTERNAL for a request that it
 * cannot decode, where INVALID_ARGUMENT is right.
 */
export function serverMethod<Output extends DescMessage>(
  method: MethodDesc<DescMessage, Output>,
): ServerMethodDefinition<Uint8Array, Encodable<Output>> {
  return { ...shapeOf(method), requestDeserialize: (bytes) => bytes, responseSerialize: serializerOf(method.output) };
}

/** A method whose requests and responses are bytes on both sides: for a method that answers nothing but an error. */
export function rawServerMethod(method: DescMethod): ServerMethodDefinition<Uint8Array, Uint8Array> {
  return { ...shapeOf(method), requestDeserialize: (bytes) => bytes, responseSerialize: asBuffer };
}
