/** How large an event is as a record, before it is one. */

import { HoldfastError } from "../base/errors.ts";
import { encodeEvent } from "../canon/index.ts";
import { RECORD_BYTES_MAX, type NewEvent } from "../journal/index.ts";

/** What a record needs beside its event: hashes, seq and fence. */
const RECORD_OVERHEAD_BYTES = 256;

/** About the bytes of the record that `event` becomes, never fewer. */
export function recordBytesOf({ event }: NewEvent): number {
  return encodeEvent(event).length + RECORD_OVERHEAD_BYTES;
}

/** Throws RESOURCE_EXHAUSTED for an event that no record can hold, before anything of it is written. */
export function refuseOversize(field: string, event: NewEvent): void {
  const bytes = recordBytesOf(event);
  if (bytes <= RECORD_BYTES_MAX) return;
  throw new HoldfastError(
    "resource_exhausted",
    `${field}: takes about ${bytes} bytes as a record; at most ${RECORD_BYTES_MAX} are allowed`,
    { field },
  );
}
