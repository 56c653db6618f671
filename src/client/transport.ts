/**
 * What the client needs of a transport. `holdfast/client/node` speaks gRPC over grpc-js; anything else that carries the
 * protocol's messages (gRPC-Web, a test's direct call) can stand in.
 */

import type { DescMessage, DescMethod, MessageShape } from "@bufbuild/protobuf";
import type { Ports } from "../base/ports.ts";

/** Options of every call. */
export interface CallOptions {
  /** Ends the call; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long the call may take, in milliseconds; then it rejects with DEADLINE_EXCEEDED. Default: 30,000 for calls with one
   * answer, none for streams.
   */
  readonly timeoutMs?: number | undefined;
}

/** A method whose messages are known, as `Sessions.method.exec` is. */
export type Method<Input extends DescMessage, Output extends DescMessage> = DescMethod & {
  readonly input: Input;
  readonly output: Output;
};

/**
 * Carries calls. Everything that a call rejects with is a HoldfastError rebuilt from the server's status, or the reason of the
 * caller's signal. A stream that its consumer leaves is cancelled; a stream that was cut rejects with UNAVAILABLE.
 */
export interface Transport extends AsyncDisposable {
  /** The clock and the randomness that waiting between attempts uses. */
  readonly ports: Pick<Ports, "clock" | "random">;
  /** One request, one answer. */
  unary<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    options?: CallOptions,
  ): Promise<MessageShape<Output>>;
  /** One request, a stream of messages in order. The call begins with the first read. */
  stream<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    options?: CallOptions,
  ): AsyncGenerator<MessageShape<Output>, void, undefined>;
  /**
   * A stream of requests, one answer. Requests are taken no faster than they are sent; an answer that comes early ends the call. What
   * `requests` throws ends the call and is what it rejects with.
   */
  upload<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    requests: AsyncIterable<MessageShape<Input>>,
    options?: CallOptions,
  ): Promise<MessageShape<Output>>;
  /** Like `stream`, each message as the bytes that came. */
  streamBytes<Input extends DescMessage>(
    method: Method<Input, DescMessage>,
    request: MessageShape<Input>,
    options?: CallOptions,
  ): AsyncGenerator<Uint8Array, void, undefined>;
}
