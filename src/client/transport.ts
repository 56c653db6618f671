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

/** Options of a call in both directions. */
export interface DuplexOptions extends CallOptions {
  /** Metadata of the call beside what the transport sends itself; keys in lower case. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** An open call in both directions. Disposing of it cancels it. */
export interface Duplex<Request, Response> extends AsyncDisposable {
  /**
   * The metadata that the server began its answer with; keys in lower case. Rejects as `responses` does where the call ended without any, and
   * is nobody's unhandled rejection.
   */
  readonly headers: Promise<ReadonlyMap<string, string>>;
  /** What comes, in order; iterated once, and read no faster than it is taken. Ends when the server has ended the call without an error. */
  readonly responses: AsyncIterable<Response>;
  /**
   * Sends a request after those before it. Resolves when the connection takes another; once the call is over it resolves at once, since what
   * became of the call is told by `responses`.
   */
  send(request: Request): Promise<void>;
  /** Says that nothing more is sent. */
  end(): void;
}

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
  /** Streams both ways at once; the call begins at once. Absent where the platform has no such calls, as a browser has none. */
  duplex?<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    options?: DuplexOptions,
  ): Duplex<MessageShape<Input>, MessageShape<Output>>;
}
