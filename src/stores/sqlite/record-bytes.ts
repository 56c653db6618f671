/**
 * The bytes of a record as the file has them: without its content hash, which stands in a column beside them, as text of twice its length
 * it would take a seventh of an ordinary record.
 *
 * Invariants:
 * - What is read is, byte for byte, what was written, whoever encoded it.
 * - Bytes that were kept as they are (of older files, and where the hash is not at its usual place) begin with a tag; those that were
 *   shortened begin with a zero, which is no tag.
 */

const SHORTENED = 0x00;
const SEQ = 0x08;
const PREV_HASH = 0x12;
const CONTENT_HASH = 0x1a;
/** A hash in text. */
const HASH_BYTES = 64;
/** A field that holds one: its tag, its length, the text. */
const FIELD_BYTES = 2 + HASH_BYTES;

/** The bytes to keep of a record's. */
export function shortened(bytes: Uint8Array, contentHash: string): Uint8Array {
  const at = hashPlace(bytes, 0);
  if (!hasHashAt(bytes, at, contentHash)) return bytes;
  // What stands behind the hash moves to its place at once; what stands before it is short. A copy, also of a Node Buffer, whose `slice` is none.
  const kept = new Uint8Array(bytes.subarray(FIELD_BYTES - 1));
  kept[0] = SHORTENED;
  for (let index = 0; index < at; index++) kept[1 + index] = bytes[index]!;
  // What stood behind the hash may look like what stands before it.
  return hashPlace(kept, 1) === 1 + at ? kept : bytes;
}

/** The record's bytes, of what was kept of them and its hash. */
export function wholeBytes(kept: Uint8Array, contentHash: string): Uint8Array {
  if (kept[0] !== SHORTENED) return kept;
  const at = hashPlace(kept, 1) - 1;
  const bytes = new Uint8Array(kept.length - 1 + FIELD_BYTES);
  bytes.set(kept, FIELD_BYTES - 1);
  for (let index = 0; index < at; index++) bytes[index] = kept[1 + index]!;
  bytes[at] = CONTENT_HASH;
  bytes[at + 1] = HASH_BYTES;
  for (let index = 0; index < HASH_BYTES; index++) bytes[at + 2 + index] = contentHash.charCodeAt(index);
  return bytes;
}

/** Where the hash stands in a record that begins at `from`: behind its seq and the hash before it, where there is one. */
function hashPlace(bytes: Uint8Array, from: number): number {
  let at = from;
  if (bytes[at] === SEQ) {
    at += 1;
    while ((bytes[at] ?? 0) >= 0x80) at += 1;
    at += 1;
  }
  return bytes[at] === PREV_HASH && bytes[at + 1] === HASH_BYTES ? at + FIELD_BYTES : at;
}

function hasHashAt(bytes: Uint8Array, at: number, contentHash: string): boolean {
  if (contentHash.length !== HASH_BYTES || bytes[at] !== CONTENT_HASH || bytes[at + 1] !== HASH_BYTES) return false;
  if (bytes.length < at + FIELD_BYTES) return false;
  for (let index = 0; index < HASH_BYTES; index++) if (bytes[at + 2 + index] !== contentHash.charCodeAt(index)) return false;
  return true;
}
