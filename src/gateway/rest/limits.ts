/** The limits that only the REST front door has. Each is documented in `docs/rest.md` and tested at its edge. */

import { GATEWAY_LIMITS, type GatewayLimits } from "../limits.ts";

/** What it has in common with gRPC: bytes of a body (one more is 413), its parts, and what all that are arriving may keep. */
type SharedLimits = Pick<GatewayLimits, "requestBytesMax" | "requestPartsMax" | "arrivingBytesMax">;

export interface RestLimits extends SharedLimits {
  /** Records of a JSON page when the caller names no number. */
  readonly pageRecordsDefault: number;
  /** Records of a JSON page at most; a larger `limit` is cut to it. */
  readonly pageRecordsMax: number;
  /** Bytes of stored records after which a JSON page ends, whatever its number of records. */
  readonly pageBytesSoftMax: number;
  /** Milliseconds of silence after which an event stream sends a comment, so that proxies keep it open. */
  readonly heartbeatMs: number;
}

export const REST_LIMITS: RestLimits = {
  requestBytesMax: GATEWAY_LIMITS.requestBytesMax,
  requestPartsMax: GATEWAY_LIMITS.requestPartsMax,
  arrivingBytesMax: GATEWAY_LIMITS.arrivingBytesMax,
  pageRecordsDefault: 256,
  pageRecordsMax: 1000,
  pageBytesSoftMax: 4 * 1024 * 1024,
  heartbeatMs: 15_000,
};
