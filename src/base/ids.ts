/**
 * Branded identifiers. A plain string or number never passes for one of these, so a seq cannot land where a fence belongs.
 *
 * Seqs and fences are safe integers inside and int64 on the wire; `seqOf` and `fenceOf` are the only ways in.
 */

import { HoldfastError, invalidArgument } from "./errors.ts";
import type { Clock, Random } from "./ports.ts";

declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: Name };

/** The uid of a session: 1 to 128 characters without control characters. */
export type SessionUid = Branded<string, "SessionUid">;
/** The id of one execution (turn), unique within its session. */
export type ExecutionId = Branded<string, "ExecutionId">;
/** The position of a record in its session's journal: 1, 2, 3 …; 0 means "no records yet". */
export type Seq = Branded<number, "Seq">;
/** The monotonic token of a writer: an append under a superseded fence is refused (I6). */
export type Fence = Branded<number, "Fence">;
/** The name of one running host process, as leases are held by it. */
export type HostId = Branded<string, "HostId">;

/** The seq before the first record. */
export const SEQ_NONE = 0 as Seq;
/** The fence before any writer. */
export const FENCE_NONE = 0 as Fence;
/** The longest uid that a request may carry, in UTF-16 code units. */
export const UID_CHARS_MAX = 128;

/** `value` as a seq. Throws INVALID_ARGUMENT naming `field` when it is negative or beyond 2^53−1. */
export function seqOf(value: number | bigint, field = "seq"): Seq {
  return safeNatural(value, field) as Seq;
}

/** `value` as a fence. Throws INVALID_ARGUMENT naming `field` when it is negative or beyond 2^53−1. */
export function fenceOf(value: number | bigint, field = "fence"): Fence {
  return safeNatural(value, field) as Fence;
}

function safeNatural(value: number | bigint, field: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) {
    throw invalidArgument(field, "must be a whole number from 0 to 9007199254740991");
  }
  return number;
}

// oxlint-disable-next-line no-control-regex -- control characters are exactly what a uid must not hold.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

/** `value` as a session uid. Throws INVALID_ARGUMENT naming `field` when it is empty, too long or has control characters. */
export function sessionUidOf(value: string, field = "session"): SessionUid {
  if (value === "") throw invalidArgument(field, "must name a session by its uid");
  if (value.length > UID_CHARS_MAX) throw invalidArgument(field, `must have at most ${UID_CHARS_MAX} characters`);
  if (CONTROL.test(value) || !value.isWellFormed()) {
    throw invalidArgument(field, "must have no control characters and no lone surrogates");
  }
  return value as SessionUid;
}

/** `value` as an execution id; what a journal holds is taken as it is. */
export function executionIdOf(value: string): ExecutionId {
  return value as ExecutionId;
}

/** A host's name for itself, new at every start. */
export function hostIdOf(value: string): HostId {
  if (value === "") throw new HoldfastError("invalid_argument", "host id: must not be empty");
  return value as HostId;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * A new time-ordered UUID (version 7): ids that are made one after the other sit together in an index.
 * Clock and randomness are the caller's, so a simulated run makes the same ids again.
 */
export function newUuid(ports: { readonly clock: Clock; readonly random: Random }): string {
  const bytes = ports.random.bytes(16);
  let timeMs = ports.clock.nowMs();
  for (let index = 5; index >= 0; index--) {
    bytes[index] = timeMs % 256;
    timeMs = Math.floor(timeMs / 256);
  }
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  let text = "";
  for (let index = 0; index < 16; index++) {
    if (index === 4 || index === 6 || index === 8 || index === 10) text += "-";
    text += HEX[bytes[index]!]!;
  }
  return text;
}

/** A new session uid. */
export function newSessionUid(ports: { readonly clock: Clock; readonly random: Random }): SessionUid {
  return newUuid(ports) as SessionUid;
}

/** A new execution id. */
export function newExecutionId(ports: { readonly clock: Clock; readonly random: Random }): ExecutionId {
  return newUuid(ports) as ExecutionId;
}
