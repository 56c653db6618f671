/**
 * What a draft has worked out so far, over what is durable: sessions as they will be, records to add and to remove, names.
 *
 * Invariants:
 * - Looking up sees what is durable and, over it, what earlier items of the draft did.
 * - Sessions that end up unusable are listed before those that can be used, else in the order in which they were first touched: a
 *   name that one item frees and another takes is freed first when the changes are written in order.
 */

import { SEQ_NONE, type Seq, type SessionUid } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { segmentsOf, type OriginOf } from "./lineage.ts";
import type { Receipt } from "./receipt.ts";
import { sharedSeq } from "./reclaim.ts";
import type { StoredRecord } from "./record.ts";
import { isLive, readableSeq, type SessionState } from "./session-state.ts";

/** What is durable, as a draft looks it up. */
export interface Committed {
  load(session: SessionUid): SessionState | undefined;
  /** Whether a session that is not deleted has this name in this project. */
  nameTaken(project: string, name: string): boolean;
  readonly originOf: OriginOf;
  /** The content hash of a record that the session with this key wrote itself. */
  hashAt(key: number, seq: Seq): string | undefined;
  /** The last seq that a child of the session with this key shares (`sharedSeq`); 0 when it has none. */
  neededSeq(session: SessionUid): Seq;
  /**
   * The seq after which the last records of the session with this key begin, up to `toSeq` and above `floorSeq`: as many as one
   * transaction may remove, and at least one.
   */
  sliceFloor(key: number, floorSeq: Seq, toSeq: Seq): Seq;
}

/** A record that a draft adds, and whose it is. */
export interface DraftRecord {
  readonly key: number;
  readonly record: StoredRecord;
  readonly aside: Uint8Array | undefined;
  /** Set for the last record that an append or an adoption adds: the session after it. */
  readonly ends: SessionState | undefined;
}

/** A session that a draft changes. `before` is undefined for a new one; `removed`, its row goes with what was `after` it. */
export interface DraftChange {
  readonly before: SessionState | undefined;
  after: SessionState;
  removed: boolean;
  /**
   * The last version that a record of the draft `ends` under the session's own fence; 0 where there is none. Where it is the version of
   * `after`, that record says head, fence, version and time of `after`.
   */
  recordedVersion: number;
}

/** Records that a draft removes: all that a session has above a seq, with what is beside them. */
export interface DraftCut {
  readonly key: number;
  readonly aboveSeq: Seq;
}

/** A receipt that a draft writes, and whose it is. */
export interface DraftReceipt {
  readonly key: number;
  readonly receipt: Receipt;
}

/** One commit of one session, for its watchers. */
export interface DraftNotice {
  readonly session: SessionUid;
  readonly records: readonly StoredRecord[];
}

/** What a draft needs. */
export interface DraftPorts {
  readonly committed: Committed;
  readonly digest: Digest;
  /** The time of the whole draft. */
  readonly nowMs: number;
  /** A key that no session of the store has. */
  nextKey(): number;
}

/** The accumulated work of one transaction. `Draft` has the operations that make it. */
export class DraftWork {
  readonly records: DraftRecord[] = [];
  /** To be made after the records were added. */
  readonly cuts: DraftCut[] = [];
  readonly receipts: DraftReceipt[] = [];
  readonly notices: DraftNotice[] = [];
  /** The bytes of `records`. */
  bytes = 0;
  /** How many records it adds or removes. */
  recordsTouched = 0;
  protected readonly ports: DraftPorts;
  readonly #changes = new Map<SessionUid, DraftChange>();
  /** Names that this draft took (true) or freed (false). */
  readonly #names = new Map<string, boolean>();

  constructor(ports: DraftPorts) {
    this.ports = ports;
  }

  /** The sessions that this draft changes, in an order in which they can be written. */
  *changes(): Generator<DraftChange, void, void> {
    for (const change of this.#changes.values()) if (!isLive(change.after)) yield change;
    for (const change of this.#changes.values()) if (isLive(change.after)) yield change;
  }

  /** Whether anything must be written. A lease alone need not be. */
  get isEmpty(): boolean {
    if (this.records.length > 0 || this.receipts.length > 0) return false;
    for (const { before, after } of this.#changes.values()) if (before?.version !== after.version) return false;
    return true;
  }

  /** Removes what a session wrote itself above `aboveSeq`. */
  protected cut(state: SessionState, aboveSeq: Seq): void {
    const ownSeq = state.parent?.forkSeq ?? SEQ_NONE;
    const count = readableSeq(state) - Math.max(aboveSeq, ownSeq);
    if (count <= 0) return;
    this.cuts.push({ key: state.key, aboveSeq });
    this.recordsTouched += count;
  }

  /** What children share of a session. A child that this draft changed counts as it was and as it is: too much is kept for now. */
  protected neededSeq(session: SessionUid): Seq {
    let needed = this.ports.committed.neededSeq(session);
    for (const { after, removed } of this.#changes.values()) {
      if (!removed && after.parent?.uid === session) needed = Math.max(needed, sharedSeq(after)) as Seq;
    }
    return needed;
  }

  /** The session as this draft has it so far. */
  protected load(session: SessionUid): SessionState | undefined {
    const change = this.#changes.get(session);
    if (change === undefined) return this.ports.committed.load(session);
    return change.removed ? undefined : change.after;
  }

  /** Whether an item of the draft changed the session. */
  isTouched(session: SessionUid): boolean {
    return this.#changes.has(session);
  }

  /** Lets the session's row go, as `put` left it. */
  protected remove(session: SessionUid): void {
    const change = this.#changes.get(session);
    if (change !== undefined) change.removed = true;
  }

  protected change(before: SessionState | undefined, after: SessionState): DraftChange {
    const { uid } = after.seed;
    let change = this.#changes.get(uid);
    if (change === undefined) {
      change = { before, after, removed: false, recordedVersion: 0 };
      this.#changes.set(uid, change);
    } else {
      change.after = after;
    }
    return change;
  }

  /** Replaces a session's state, with all that follows from it: its name and its watchers. */
  protected put(before: SessionState | undefined, after: SessionState, records: readonly StoredRecord[]): void {
    const change = this.change(before, after);
    if (records.at(-1)?.fence === after.fence) change.recordedVersion = after.version;
    const { project, name, uid } = after.seed;
    const wasLive = before !== undefined && isLive(before);
    if (name !== "" && wasLive !== isLive(after)) this.#names.set(nameKey(project, name), isLive(after));
    if (before?.version !== after.version) this.notices.push({ session: uid, records });
  }

  /** Adds records of the session with this key; the last of them `ends` what makes the session that state. */
  protected addRecords(
    key: number,
    records: readonly StoredRecord[],
    asides: readonly (Uint8Array | undefined)[],
    ends: SessionState | undefined,
  ): void {
    const last = records.length - 1;
    for (let index = 0; index <= last; index++) {
      const record = records[index]!;
      this.records.push({ key, record, aside: asides[index], ends: index === last ? ends : undefined });
      this.bytes += record.bytes.length;
    }
    this.recordsTouched += records.length;
  }

  protected nameTaken(project: string, name: string): boolean {
    if (name === "") return false;
    return this.#names.get(nameKey(project, name)) ?? this.ports.committed.nameTaken(project, name);
  }

  /** The content hash at `seq` of a session's journal, be the record an ancestor's or of this draft. */
  protected hashAt(key: number, seq: Seq): string | undefined {
    const originOf: OriginOf = (of) => {
      for (const { after } of this.#changes.values()) if (after.key === of) return after.parent;
      return this.ports.committed.originOf(of);
    };
    const owner = segmentsOf(key, seq, seq, originOf)[0]?.key;
    if (owner === undefined) return undefined;
    const drafted = this.records.find((added) => added.key === owner && added.record.seq === seq);
    return drafted?.record.contentHash ?? this.ports.committed.hashAt(owner, seq);
  }
}

/** A name in its project. */
export function nameKey(project: string, name: string): string {
  return `${project}\u0000${name}`;
}
