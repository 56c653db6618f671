/**
 * Adoption: records that another journal sealed, taken over as they are. Pure but for the digest.
 *
 * Invariants:
 * - Nothing of a record is taken on trust: each is verified against the one before it, as `verify.ts` does, and its bytes are kept.
 * - A session that adoption creates is incomplete until it is completed: nobody can run a turn of it, fork it or list it, so a half of
 *   it never passes for the whole.
 * - The row's fence is at least that of every record, so the next writer's fence is above them all.
 */

import { HoldfastError } from "../base/errors.ts";
import { fenceOf, SEQ_NONE, type Fence, type Seq } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { APPEND_EVENTS_MAX, RECORD_BYTES_MAX } from "./limits.ts";
import { EMPTY_PROJECTION, project, type Projection } from "./projection.ts";
import type { Head, SealedRecord, StoredRecord } from "./record.ts";
import { isDeleted, isIncomplete, liveHolder, newSessionState, type SessionState } from "./session-state.ts";
import type { AdoptOutcome, AdoptRequest, SessionSeed } from "./store.ts";
import { checkRecord, type ChainFault } from "./verify.ts";

/** A parent as an adoption finds it. */
export interface ForkBase {
  readonly key: number;
  readonly fence: Fence;
}

/** The state of a session that an adoption creates: incomplete, with nothing but what it shares with its parent. */
export function adoptedState(key: number, { seed, parent }: AdoptRequest, base: ForkBase | undefined, nowMs: number): SessionState {
  const state = newSessionState(key, seed, nowMs);
  if (parent === undefined || base === undefined) return { ...state, keptSeq: SEQ_NONE };
  const { uid, forkSeq, projection } = parent;
  return { ...state, parent: { uid, key: base.key, forkSeq }, fence: base.fence, projection, keptSeq: projection.lastSeq };
}

/** Whether a session ends before its own first record: it only stands between its parent and children that share less. */
export function isBare({ parent, projection }: SessionState): boolean {
  return parent !== undefined && projection.lastSeq < parent.forkSeq;
}

/** Why `state` cannot adopt what `request` brings; undefined when it can. */
export function adoptionRefusal(state: SessionState, request: AdoptRequest, nowMs: number): AdoptOutcome | undefined {
  const { parent } = state;
  if (parent?.uid !== request.parent?.uid || parent?.forkSeq !== request.parent?.forkSeq) return { kind: "uid-taken" };
  if (!sameSeed(state.seed, request.seed)) return { kind: "uid-taken" };
  if (!isIncomplete(state) && (state.keptSeq !== undefined || isDeleted(state.projection))) return { kind: "deleted" };
  const holder = liveHolder(state.lease, nowMs);
  if (holder !== undefined) return { kind: "held", holder };
  const { lastSeq, headHash } = state.projection;
  const isNext = lastSeq === request.after.seq && headHash === request.after.hash && (request.records.length === 0 || !isBare(state));
  return isNext ? undefined : { kind: "conflict", lastSeq };
}

/** Records that were found to continue a chain, and the session after them. */
export interface Adopted {
  readonly kind: "adopted";
  readonly state: SessionState;
  readonly records: readonly StoredRecord[];
}

/** Puts `records` onto `state`. Throws RESOURCE_EXHAUSTED for more of them, or larger ones, than an append may have. */
export function adoptRecords(
  state: SessionState,
  sealed: readonly SealedRecord[],
  digest: Digest,
  nowMs: number,
): Adopted | { readonly kind: "broken"; readonly fault: ChainFault } {
  requireWithinLimits(sealed);
  let { projection, fence } = state;
  const records: StoredRecord[] = [];
  for (const { bytes } of sealed) {
    const read = readSealed(bytes, projection, digest);
    if (typeof read === "string") {
      const seq = (projection.lastSeq + 1) as Seq;
      return { kind: "broken", fault: { kind: "unreadable", seq, expected: "a record that a session may have there", found: read } };
    }
    if (read.kind === "broken") return read;
    records.push(read.record);
    projection = read.projection;
    fence = Math.max(fence, read.record.fence) as Fence;
  }
  const version = state.version + 1;
  const updateTimeMs = Math.max(state.updateTimeMs, nowMs);
  const keptSeq = state.keptSeq === undefined ? undefined : projection.lastSeq;
  return { kind: "adopted", records, state: { ...state, version, updateTimeMs, fence, lease: undefined, projection, keptSeq } };
}

type ReadSealed =
  | { readonly kind: "read"; readonly record: StoredRecord; readonly projection: Projection }
  | { readonly kind: "broken"; readonly fault: ChainFault }
  | string;

/** The record and what it makes of the session; a text where the chain is right but no session has such a record there. */
function readSealed(bytes: Uint8Array, before: Projection, digest: Digest): ReadSealed {
  const checked = checkRecord(bytes, { seq: before.lastSeq, hash: before.headHash }, digest);
  if (checked.kind === "broken") return checked;
  if (isDeleted(before)) return "it follows the session's deletion";
  const { head, record } = checked;
  const { event } = record;
  if (event === undefined) return "it holds no event";
  try {
    const stored: StoredRecord = { seq: head.seq, kind: event.kind, contentHash: head.hash, fence: fenceOf(record.fence), bytes };
    return { kind: "read", record: stored, projection: project(before, head.seq, head.hash, event) };
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "invalid_argument") return "it holds a number that no record can have";
    throw error;
  }
}

function requireWithinLimits(sealed: readonly SealedRecord[]): void {
  if (sealed.length > APPEND_EVENTS_MAX) {
    throw new HoldfastError("resource_exhausted", `adopt: has ${sealed.length} records; at most ${APPEND_EVENTS_MAX} are allowed`);
  }
  for (const { bytes } of sealed) {
    if (bytes.length <= RECORD_BYTES_MAX) continue;
    throw new HoldfastError("resource_exhausted", `record: takes ${bytes.length} bytes; at most ${RECORD_BYTES_MAX} are allowed`);
  }
}

/** Whether two seeds say the same. */
export function sameSeed(left: SessionSeed, right: SessionSeed): boolean {
  return seedText(left) === seedText(right);
}

/** Every field of a seed, maps in the order of their keys. */
function seedText(seed: SessionSeed): string {
  const { uid, project: projectName, name, harness, model, identity, origin, createTimeMs } = seed;
  const who = [identity?.principal, identity?.issuer, identity?.subject];
  const from = [origin?.source, origin?.subject, origin?.uri, sorted(origin?.attributes)];
  return JSON.stringify([uid, projectName, name, harness, model, createTimeMs, who, from, sorted(seed.labels), sorted(seed.annotations)]);
}

function sorted(map: Readonly<Record<string, string>> = {}): readonly (readonly [string, string])[] {
  return Object.entries(map).toSorted(([left], [right]) => (left < right ? -1 : 1));
}

/** The head before a session's first own record: its parent's at the fork, or none. */
export function baseHead(parent: AdoptRequest["parent"]): Head {
  const { lastSeq, headHash } = parent?.projection ?? EMPTY_PROJECTION;
  return { seq: lastSeq, hash: headHash };
}
