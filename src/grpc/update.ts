/**
 * Records inside live updates. `ExecUpdate.record` and `TailUpdate.record` are both field 1, so one wrapping serves both: a
 * record's stored bytes go out and come in without being decoded.
 */

/** Field 1, length-delimited: the one tag of a record inside an update. */
const RECORD_TAG = 0x0a;

/** The update that carries the record whose encoding is `record`. */
export function wrapRecord(record: Uint8Array): Buffer {
  const lengthBytes = varintBytes(record.length);
  const update = Buffer.allocUnsafe(1 + lengthBytes + record.length);
  update[0] = RECORD_TAG;
  let rest = record.length;
  for (let at = 1; at < lengthBytes; at++) {
    update[at] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  update[lengthBytes] = rest;
  update.set(record, 1 + lengthBytes);
  return update;
}

/**
 * The record's bytes when `update` is one record and nothing else, over the same memory; undefined for any other update, which
 * is then for the message's own decoder.
 */
export function unwrapRecord(update: Uint8Array): Uint8Array | undefined {
  if (update[0] !== RECORD_TAG) return undefined;
  let length = 0;
  for (let at = 1; at <= 5; at++) {
    const byte = update[at];
    if (byte === undefined) return undefined;
    length += (byte & 0x7f) * 2 ** (7 * (at - 1));
    if (byte < 0x80) return at + 1 + length === update.length ? update.subarray(at + 1) : undefined;
  }
  return undefined;
}

function varintBytes(value: number): number {
  let count = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) count++;
  return count;
}
