/** The front doors' limits and times. Each is documented in `docs/limits.md` and tested at its edge. */

export interface GatewayLimits {
  /** Bytes of one request: a gRPC message or an HTTP body. */
  readonly requestBytesMax: number;
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
  /** How long an HTTP/2 connection may be quiet before it is pinged. */
  readonly keepaliveIntervalMs: number;
  /** How long the answer to a ping may take before the connection is dropped. */
  readonly keepaliveTimeoutMs: number;
}

export const GATEWAY_LIMITS: GatewayLimits = {
  requestBytesMax: 4 * 1024 * 1024,
  metadataBytesMax: 16 * 1024,
  streamsPerConnectionMax: 1_000,
  connectionsMax: 4_096,
  streamBufferBytesMax: 256 * 1024,
  helloTimeoutMs: 10_000,
  keepaliveIntervalMs: 30_000,
  keepaliveTimeoutMs: 10_000,
};
