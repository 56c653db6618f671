/**
 * Verification of a chain: every record's seq follows its predecessor's, its prev_hash is its predecessor's content_hash, and
 * its content_hash is the hash of what it holds.
 *
 * Invariants:
 * - Nothing of a record is taken on trust: hashes are computed from the bytes, and bytes that hold more than the message that
 *   is hashed (unknown fields, wrong wire types, values without a kind) are a fault, not an encoding.
 * - Bytes in another legal encoding than ours are no fault: journals of other writers verify.
 * - What the contract leaves outside the hash cannot be verified here: a record's fence (but a store's own column for it must
 *   agree with the bytes), the sign of a zero in a Struct, and the session resource. A chain that ends early is intact as far as
 *   it goes: only the head that the session row names tells (`finish`).
 */

import { canonicalRecord, readLogRecord, type RecordReading } from "../canon/index.ts";
import { HoldfastError } from "../base/errors.ts";
import { SEQ_NONE, type Seq } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import type { LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import type { Head, StoredRecord } from "./record.ts";

/**
 * The way in which a chain breaks, as `holdfast.v1.ChainFault.Kind` has it:
 * - `seq`: a record's seq is not the one after its predecessor's (a record is missing, doubled or out of order)
 * - `prev-hash`: it does not link to its predecessor
 * - `content-hash`: its hash is not the hash of what it holds
 * - `unreadable`: it cannot be read, or holds what no hash covers or can cover
 * - `head`: the chain ends before or after the head that the session row names
 */
export type ChainFaultKind = "seq" | "prev-hash" | "content-hash" | "unreadable" | "head";

/** Where a chain breaks and how. */
export interface ChainFault {
  readonly kind: ChainFaultKind;
  /** The seq of the place: what the record there should have. For `head`, the last seq that was checked. */
  readonly seq: Seq;
  /** What the chain requires there: a seq, a hash, or for `unreadable` a few words. */
  readonly expected: string;
  /** What was found there, likewise. Never a payload. */
  readonly found: string;
}

/** The outcome of a verification. A broken chain is an answer, not an error. */
export type ChainVerdict =
  | { readonly kind: "intact"; readonly records: number; readonly head: Head }
  | {
      readonly kind: "broken";
      /** How many records were found right before the fault. */
      readonly records: number;
      /** The last one of these. */
      readonly head: Head;
      readonly fault: ChainFault;
    };

/** A record in any form in which it is met: as a store keeps it, as the wire brings it, or its bytes alone. */
export type VerifiableRecord = StoredRecord | LogRecord | Uint8Array;

/** Verifies one chain, record by record, in the order of their seqs. It stops at the first fault. */
export interface ChainVerifier {
  /** Checks the next record. Returns the chain's first fault, now and from then on; undefined while there is none. */
  push(record: VerifiableRecord): ChainFault | undefined;
  /** Checks the records of a page, in order, like `push`. */
  pushPage(records: Iterable<VerifiableRecord>): ChainFault | undefined;
  /**
   * The verdict over all that was pushed. With `expectedHead`, the chain must end exactly there; without it, a chain that was
   * cut short is intact.
   */
  finish(expectedHead?: Head): ChainVerdict;
}

/**
 * A verifier of the chain that starts at `after`: by default before the first record, otherwise behind a record whose hash is
 * already trusted. Pure but for the digest.
 */
export function createChainVerifier(digest: Digest, after: Head = { seq: SEQ_NONE, hash: "" }): ChainVerifier {
  let head = after;
  let records = 0;
  let fault: ChainFault | undefined;

  const push = (record: VerifiableRecord): ChainFault | undefined => {
    if (fault !== undefined) return fault;
    const checked = checkRecord(record, head, digest);
    if (checked.kind === "broken") {
      fault = checked.fault;
    } else {
      head = checked.head;
      records++;
    }
    return fault;
  };

  return {
    push,
    pushPage(page) {
      for (const record of page) {
        if (push(record) !== undefined) break;
      }
      return fault;
    },
    finish(expectedHead) {
      const found = fault ?? (expectedHead === undefined ? undefined : headFault(head, expectedHead));
      return found === undefined ? { kind: "intact", records, head } : { kind: "broken", records, head, fault: found };
    },
  };
}

/** A record that was checked. */
export type CheckedRecord =
  | { readonly kind: "right"; readonly head: Head; readonly record: LogRecord }
  | { readonly kind: "broken"; readonly fault: ChainFault };

/** Checks the record that should follow `head`. */
export function checkRecord(given: VerifiableRecord, head: Head, digest: Digest): CheckedRecord {
  const seq = (head.seq + 1) as Seq;
  const broken = (kind: ChainFaultKind, expected: string, found: string): CheckedRecord => {
    return { kind: "broken", fault: { kind, seq, expected, found } };
  };
  const read = readRecord(given);
  if (read.kind === "unreadable") return broken("unreadable", READABLE, read.reason);
  const { record, text } = read;
  if (record.seq !== BigInt(seq)) return broken("seq", `${seq}`, `${record.seq}`);
  if (record.prevHash !== head.hash) return broken("prev-hash", head.hash, record.prevHash);
  const hash = digest.sha256Hex(text);
  if (record.contentHash !== hash) return broken("content-hash", hash, record.contentHash);
  if (isStored(given)) {
    if (given.seq !== seq) return broken("seq", `${seq}`, `${given.seq}`);
    if (given.contentHash !== hash) return broken("content-hash", hash, given.contentHash);
    const same = given.kind === record.event?.kind && BigInt(given.fence) === record.fence;
    if (!same) return broken("unreadable", READABLE, "the store's kind or fence for it differs from its bytes");
  }
  return { kind: "right", head: { seq, hash }, record };
}

const READABLE = "a record that can be read and has a canonical form";

/** A record with the text that its hash covers. */
type Read =
  | { readonly kind: "read"; readonly record: LogRecord; readonly text: string }
  | { readonly kind: "unreadable"; readonly reason: string };

function readRecord(given: VerifiableRecord): Read {
  const reading = decoded(given);
  if (reading.kind === "fault") return { kind: "unreadable", reason: `it ${reading.reason}` };
  const { record } = reading;
  const { event, prevHash, seq } = record;
  if (event === undefined) return { kind: "unreadable", reason: "it holds no event" };
  try {
    return { kind: "read", record, text: canonicalRecord({ event, prevHash, seq }) };
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "invalid_argument")
      return { kind: "unreadable", reason: "it has no canonical form" };
    throw error;
  }
}

function decoded(given: VerifiableRecord): RecordReading {
  if (given instanceof Uint8Array) return readLogRecord(given);
  if (isStored(given)) return readLogRecord(given.bytes);
  // Somebody else decoded it, and may have kept fields that no hash covers.
  return holdsUnknown(given) ? { kind: "fault", reason: "holds a field that this version does not know" } : { kind: "read", record: given };
}

function isStored(given: VerifiableRecord): given is StoredRecord {
  return "bytes" in given;
}

function holdsUnknown(value: unknown): boolean {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return false;
  if ("$unknown" in value && isUnknownFields(value.$unknown)) return true;
  return Object.values(value).some(holdsUnknown);
}

/** A Struct may have a key of that name, but no bytes in it. */
function isUnknownFields(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.some((field: unknown) => {
      return typeof field === "object" && field !== null && "data" in field && field.data instanceof Uint8Array;
    })
  );
}

function headFault(head: Head, expected: Head): ChainFault | undefined {
  if (head.seq !== expected.seq) return { kind: "head", seq: head.seq, expected: `${expected.seq}`, found: `${head.seq}` };
  if (head.hash !== expected.hash) return { kind: "head", seq: head.seq, expected: expected.hash, found: head.hash };
  return undefined;
}
