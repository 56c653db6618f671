/**
 * A draft: what one transaction is going to write, worked out before it begins.
 *
 * Invariants:
 * - A draft sees what is durable and, over it, what its own earlier items did. It changes neither; a draft that is dropped
 *   leaves no trace.
 * - Each item is whole: it is refused, it throws, or everything it does is in the draft.
 * - Sessions are listed in the order in which they were first touched. A name that one item frees (by a deletion) and a
 *   later one takes is therefore freed first when the changes are written in order.
 */

import { invariant } from "../base/assert.ts";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import type { Fence, Seq, SessionUid } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { admit, advance, renewed } from "./admission.ts";
import { FORK_CHILDREN_MAX } from "./limits.ts";
import { segmentsOf, type OriginOf } from "./lineage.ts";
import type { NewEvent, StoredRecord } from "./record.ts";
import { seal } from "./seal.ts";
import { isDeleted, newSessionState, rowOf, type SessionState } from "./session-state.ts";
import type { AppendOutcome, AppendRequest, CreateOutcome, ForkOutcome, ForkRequest, RenewRequest, SessionSeed } from "./store.ts";

/** What is durable, as a draft looks it up. */
export interface Committed {
  load(session: SessionUid): SessionState | undefined;
  /** Whether a session that is not deleted has this name in this project. */
  nameTaken(project: string, name: string): boolean;
  readonly originOf: OriginOf;
  /** The content hash of a record that the session with this key wrote itself. */
  hashAt(key: number, seq: Seq): string | undefined;
}

/** A record that a draft adds, and whose it is. */
export interface DraftRecord {
  readonly key: number;
  readonly record: StoredRecord;
  readonly aside: Uint8Array | undefined;
}

/** A session that a draft changes. `before` is undefined for a new one. */
export interface DraftChange {
  readonly before: SessionState | undefined;
  after: SessionState;
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

/** The work of one transaction. */
export class Draft {
  readonly records: DraftRecord[] = [];
  readonly notices: DraftNotice[] = [];
  /** The bytes of `records`. */
  bytes = 0;
  readonly #ports: DraftPorts;
  readonly #changes = new Map<SessionUid, DraftChange>();
  /** Names that this draft took (true) or freed (false). */
  readonly #names = new Map<string, boolean>();

  constructor(ports: DraftPorts) {
    this.#ports = ports;
  }

  /** The sessions that this draft changes, in the order of their first change. */
  changes(): IterableIterator<DraftChange> {
    return this.#changes.values();
  }

  /** Whether anything must be written. A lease alone need not be. */
  get isEmpty(): boolean {
    if (this.records.length > 0) return false;
    for (const { before, after } of this.#changes.values()) if (before?.version !== after.version) return false;
    return true;
  }

  create(seed: SessionSeed): CreateOutcome {
    if (this.#load(seed.uid) !== undefined) return { kind: "uid-taken" };
    if (this.#nameTaken(seed.project, seed.name)) return { kind: "name-taken" };
    const state = newSessionState(this.#ports.nextKey(), seed, this.#ports.nowMs);
    this.#put(undefined, state, []);
    return { kind: "created", row: rowOf(state, this.#ports.nowMs) };
  }

  append(request: AppendRequest): AppendOutcome {
    const { digest, nowMs } = this.#ports;
    const state = this.#load(request.session);
    const admitted = admit(state, request, nowMs);
    if (admitted.kind !== "admitted") return admitted;
    invariant(state !== undefined, "an admitted append has a session");
    const advanced = advance(state, admitted, request, digest, nowMs);
    this.#addRecords(state.key, advanced.records, request.events);
    this.#put(state, advanced.state, advanced.records);
    return { kind: "appended", records: advanced.records, fence: admitted.fence, projection: advanced.state.projection };
  }

  fork(request: ForkRequest): ForkOutcome {
    const parent = this.#load(request.parent);
    if (parent === undefined) return { kind: "not-found" };
    if (isDeleted(parent.projection)) return { kind: "deleted" };
    const { lastSeq } = parent.projection;
    if (request.expectedLastSeq !== undefined && request.expectedLastSeq !== lastSeq) return { kind: "conflict", lastSeq };
    if (request.atSeq > lastSeq) return { kind: "past-head", lastSeq };
    this.#requireSound(request, parent);
    const taken = this.#takenName(request);
    if (taken !== undefined) return { kind: "name-taken", name: taken };
    const children = request.children.map((child) => this.#sealChild(request, parent, child));
    for (const { state, records, marker } of children) {
      this.#addRecords(state.key, records, [marker]);
      this.#put(undefined, state, records);
    }
    return { kind: "forked", rows: children.map(({ state }) => rowOf(state, this.#ports.nowMs)) };
  }

  renew(request: RenewRequest): SessionUid[] {
    const lost: SessionUid[] = [];
    for (const { session, fence } of request.sessions) {
      const state = this.#load(session);
      const lease = state && renewed(state, request.holder, fence, request.leaseMs, this.#ports.nowMs);
      if (state === undefined || lease === undefined) lost.push(session);
      else this.#change(state, { ...state, lease });
    }
    return lost;
  }

  #load(session: SessionUid): SessionState | undefined {
    return this.#changes.get(session)?.after ?? this.#ports.committed.load(session);
  }

  #change(before: SessionState | undefined, after: SessionState): void {
    const { uid } = after.seed;
    const change = this.#changes.get(uid);
    if (change === undefined) this.#changes.set(uid, { before, after });
    else change.after = after;
  }

  #put(before: SessionState | undefined, after: SessionState, records: readonly StoredRecord[]): void {
    this.#change(before, after);
    const { project, name, uid } = after.seed;
    if (name !== "" && (before === undefined || isDeleted(after.projection))) {
      this.#names.set(nameKey(project, name), !isDeleted(after.projection));
    }
    if (before?.version !== after.version) this.notices.push({ session: uid, records });
  }

  #addRecords(key: number, records: readonly StoredRecord[], events: readonly NewEvent[]): void {
    for (let index = 0; index < records.length; index++) {
      const record = records[index]!;
      this.records.push({ key, record, aside: events[index]?.aside });
      this.bytes += record.bytes.length;
    }
  }

  #nameTaken(project: string, name: string): boolean {
    if (name === "") return false;
    return this.#names.get(nameKey(project, name)) ?? this.#ports.committed.nameTaken(project, name);
  }

  /** The first child name that is taken, be it by another child of the same fork. */
  #takenName({ children }: ForkRequest): string | undefined {
    const seen = new Set<string>();
    for (const { seed } of children) {
      if (seed.name === "") continue;
      const key = nameKey(seed.project, seed.name);
      if (seen.has(key) || this.#nameTaken(seed.project, seed.name)) return seed.name;
      seen.add(key);
    }
    return undefined;
  }

  #requireSound({ children, atSeq, projection }: ForkRequest, parent: SessionState): void {
    if (children.length < 1 || children.length > FORK_CHILDREN_MAX) {
      throw invalidArgument("count", `must be from 1 to ${FORK_CHILDREN_MAX}`);
    }
    if (atSeq < 1) throw invalidArgument("at_seq", "must be from 1 to the parent's head");
    const uids = new Set(children.map(({ seed }) => seed.uid));
    if (uids.size !== children.length || children.some(({ seed }) => this.#load(seed.uid) !== undefined)) {
      throw new HoldfastError("already_exists", "fork: a child's uid belongs to another session");
    }
    const hash = atSeq === parent.projection.lastSeq ? parent.projection.headHash : this.#hashAt(parent.key, atSeq);
    invariant(projection.lastSeq === atSeq && projection.headHash === hash, "a fork's projection is the parent's at the fork");
  }

  /** The content hash at `seq` of a session's journal, be the record an ancestor's or of this draft. */
  #hashAt(key: number, seq: Seq): string | undefined {
    const originOf: OriginOf = (of) => {
      for (const { after } of this.#changes.values()) if (after.key === of) return after.parent;
      return this.#ports.committed.originOf(of);
    };
    const owner = segmentsOf(key, seq, seq, originOf)[0]?.key;
    if (owner === undefined) return undefined;
    const drafted = this.records.find((added) => added.key === owner && added.record.seq === seq);
    return drafted?.record.contentHash ?? this.#ports.committed.hashAt(owner, seq);
  }

  #sealChild({ atSeq, projection }: ForkRequest, parent: SessionState, { seed, marker }: ForkRequest["children"][number]) {
    const fence = (parent.fence + 1) as Fence;
    const sealed = seal(projection, fence, [marker], this.#ports.digest);
    const state: SessionState = {
      ...newSessionState(this.#ports.nextKey(), seed, this.#ports.nowMs),
      parent: { uid: parent.seed.uid, key: parent.key, forkSeq: atSeq },
      fence,
      projection: sealed.projection,
    };
    return { state, records: sealed.records, marker };
  }
}

function nameKey(project: string, name: string): string {
  return `${project}\u0000${name}`;
}
