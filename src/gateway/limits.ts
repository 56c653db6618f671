/** The front doors' limits and times. Each is documented in `docs/limits.md` and tested at its edge. */

export interface GatewayLimits {
  /** Bytes of one request: a gRPC message or an HTTP body. */
  readonly requestBytesMax: number;
  /** Bytes of one gRPC message of a call that needs no token: health and reflection. */
  readonly publicRequestBytesMax: number;
  /** Parts of one request: fields of a gRPC message, punctuation of a JSON body, nested ones included. */
  readonly requestPartsMax: number;
  /** How long a request may take to arrive: an HTTP request, or the message of a gRPC call. */
  readonly requestTimeoutMs: number;
  /** Bytes that one door (gRPC, HTTP) keeps of all requests that are still arriving; the oldest of them makes room. */
  readonly arrivingBytesMax: number;
  /** Open gRPC calls that need no token; the oldest of them makes room. */
  readonly publicCallsMax: number;
  /** Bytes of a call's metadata or an HTTP request's header. */
  readonly metadataBytesMax: number;
  /** Open calls of one HTTP/2 connection; a client queues further ones. */
  readonly streamsPerConnectionMax: number;
  /** Open connections of the port; further ones are closed at once. */
  readonly connectionsMax: number;
  /** Bytes that may wait for one slow reader of a stream before its source is paused. */
  readonly streamBufferBytesMax: number;
  /** How long a new connection may say nothing, and how long a request's header may take. */
  readonly helloTimeoutMs: number;
  /** How long an HTTP/1.1 client that has ended its side still gets its answer. */
  readonly halfClosedTimeoutMs: number;
  /** How long an HTTP/2 connection may be quiet before it is pinged. */
  readonly keepaliveIntervalMs: number;
  /** How long the answer to a ping may take before the connection is dropped. */
  readonly keepaliveTimeoutMs: number;
}

export const GATEWAY_LIMITS: GatewayLimits = {
  requestBytesMax: 4 * 1024 * 1024,
  publicRequestBytesMax: 64 * 1024,
  requestPartsMax: 100_000,
  requestTimeoutMs: 60_000,
  arrivingBytesMax: 128 * 1024 * 1024,
  publicCallsMax: 256,
  metadataBytesMax: 16 * 1024,
  streamsPerConnectionMax: 1_000,
  connectionsMax: 4_096,
  streamBufferBytesMax: 256 * 1024,
  helloTimeoutMs: 10_000,
  halfClosedTimeoutMs: 10_000,
  keepaliveIntervalMs: 30_000,
  keepaliveTimeoutMs: 10_000,
};
