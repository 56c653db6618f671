/** Sealing: from events to records that link to the head. Every store appends through it, so every store hashes alike. */

import { contentHash, encodeLogRecord } from "../canon/index.ts";
import { HoldfastError } from "../base/errors.ts";
import type { Fence, Seq } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { APPEND_EVENTS_MAX, RECORD_BYTES_MAX } from "./limits.ts";
import { project, type Projection } from "./projection.ts";
import type { NewEvent, StoredRecord } from "./record.ts";

/** The records of an append and the projection after it. */
export interface Sealed {
  readonly records: readonly StoredRecord[];
  readonly projection: Projection;
}

/**
 * Seals `events` onto `before`. Pure but for the digest. Throws RESOURCE_EXHAUSTED for a record or an append over its limit,
 * before anything was written.
 */
export function seal(before: Projection, fence: Fence, events: readonly NewEvent[], digest: Digest): Sealed {
  if (events.length > APPEND_EVENTS_MAX) {
    throw new HoldfastError("resource_exhausted", `append: has ${events.length} events; at most ${APPEND_EVENTS_MAX} are allowed`);
  }
  let projection = before;
  const records: StoredRecord[] = [];
  for (const { event } of events) {
    const seq = (projection.lastSeq + 1) as Seq;
    const prevHash = projection.headHash;
    const hash = contentHash({ event, prevHash, seq }, digest);
    const bytes = encodeLogRecord({ seq, prevHash, contentHash: hash, fence, event });
    if (bytes.length > RECORD_BYTES_MAX) {
      throw new HoldfastError("resource_exhausted", `event: takes ${bytes.length} bytes; at most ${RECORD_BYTES_MAX} are allowed`);
    }
    records.push({ seq, kind: event.kind, contentHash: hash, fence, bytes });
    projection = project(projection, seq, hash, event);
  }
  return { records, projection };
}
