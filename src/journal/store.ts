/**
 * The journal's interface: what every store does, whether it keeps records in memory, in a file or in a database.
 *
 * Invariants, each with a test in the conformance suite (`holdfast/testing`):
 * - One writer (I6): an append names the seq it extends and its fence; a stale seq or a superseded fence is refused and
 *   nothing of the append remains. A whole append is durable or none of it is.
 * - What was acknowledged survives (I8): a promise of `append`, `create` or `fork` resolves only after its transaction is as
 *   durable as the store's documentation says.
 * - Expected outcomes are returned as unions on `kind`. A throw is a HoldfastError: the store could not do its work, and
 *   nothing of the call was acknowledged.
 * - A watcher is told of a record only after it is durable, in order, each once.
 */

import type { Fence, HostId, Seq, SessionUid } from "../base/ids.ts";
import type { IdentityRef, Origin } from "../gen/agentsessions/v1/common_pb.ts";
import type { ComputeRef, ComputeState } from "../gen/agentsessions/v1/session_pb.ts";
import type { Projection } from "./projection.ts";
import type { Head, NewEvent, SealedRecord, StoredRecord } from "./record.ts";
import type { Receipt, ReceiptQuery } from "./receipt.ts";
import type { ChainFault } from "./verify.ts";

/** Options of every asynchronous call. */
export interface StoreCallOptions {
  readonly signal?: AbortSignal | undefined;
}

/** What a session is created with and what never changes afterwards. */
export interface SessionSeed {
  readonly uid: SessionUid;
  /** "" is the default project. */
  readonly project: string;
  /** "" or a name that no other live session of the project has. */
  readonly name: string;
  readonly harness: string;
  readonly model: string;
  readonly identity: IdentityRef | undefined;
  readonly origin: Origin | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch, by the host's clock. */
  readonly createTimeMs: number;
}

/** A session as the store knows it: its seed, its place in the lineage, its writer and its projection. */
export interface SessionRow {
  readonly seed: SessionSeed;
  /** Set iff the session was forked: whose records 1…seq are its own first ones. */
  readonly parent: { readonly uid: SessionUid; readonly forkSeq: Seq } | undefined;
  readonly updateTimeMs: number;
  /** Grows by one with every change of the row. */
  readonly version: number;
  /** The newest fence that was minted; an append under any other is refused. */
  readonly fence: Fence;
  /** Who runs the session's turn; undefined when nobody does, or when its lease has run out by the store's clock. */
  readonly holder: HostId | undefined;
  readonly compute: ComputeRef | undefined;
  readonly projection: Projection;
  /**
   * Set while records 1…keptSeq are all that can be read of the session, and it counts as deleted. Below the projection's last seq:
   * the session was reclaimed, and its children share these. At it: an import that is not complete, or the prefix that came with
   * an imported child.
   */
  readonly keptSeq: Seq | undefined;
}

/**
 * In whose name an append is made.
 * - `claim`: takes the session's lease for `holder` and mints a new fence, or keeps `keep` where the caller still owns an
 *   incarnation that was given it. Refused as `held` while another holder's lease is live, unless `takeOver` is set.
 *   `leaseMs` 0 mints the fence, supersedes whoever wrote before, and leaves no lease: for a transition in one append.
 * - `hold`: under a fence that was minted before; the lease stays as it is.
 * - `release`: like `hold`, and the lease ends with this append.
 */
export type Writer =
  | {
      readonly kind: "claim";
      readonly holder: HostId;
      readonly leaseMs: number;
      readonly keep?: Fence | undefined;
      readonly takeOver?: boolean | undefined;
    }
  | { readonly kind: "hold"; readonly fence: Fence }
  | { readonly kind: "release"; readonly fence: Fence };

/** A change of the row's compute, which is no event (warm, worker, incarnation). */
export interface ComputeChange {
  /** Overrides the projected state; undefined leaves it. */
  readonly state?: ComputeState | undefined;
  /** Replaces `Session.compute`; null removes it. */
  readonly ref?: ComputeRef | null | undefined;
}

/** One atomic change of one session. */
export interface AppendRequest {
  readonly session: SessionUid;
  /** The last seq this append extends; undefined means "wherever the head is". */
  readonly expectedLastSeq?: Seq | undefined;
  readonly writer: Writer;
  /** In order; empty for a change of lease or compute alone. */
  readonly events: readonly NewEvent[];
  readonly compute?: ComputeChange | undefined;
  /** Receipts that this append writes, each in the place of the one under its key. */
  readonly receipts?: readonly Receipt[] | undefined;
}

export type AppendOutcome =
  | {
      readonly kind: "appended";
      readonly records: readonly StoredRecord[];
      /** The fence under which the records were written. */
      readonly fence: Fence;
      readonly projection: Projection;
    }
  /** The head is not where the append expected it. */
  | { readonly kind: "conflict"; readonly lastSeq: Seq }
  /** The fence is not the newest one. */
  | { readonly kind: "fenced"; readonly fence: Fence }
  /** Another host's lease is live. */
  | { readonly kind: "held"; readonly holder: HostId }
  | { readonly kind: "not-found" }
  | { readonly kind: "deleted" };

export type CreateOutcome =
  | { readonly kind: "created"; readonly row: SessionRow }
  | { readonly kind: "name-taken" }
  | { readonly kind: "uid-taken" };

/** A range of records, both ends included. */
export interface ReadRequest {
  readonly session: SessionUid;
  /** Default 1. */
  readonly fromSeq?: Seq | undefined;
  /** Default: the head when the read begins. */
  readonly toSeq?: Seq | undefined;
  /** Records in a page at most; default 256. A page also ends at about 1 MiB. */
  readonly pageRecordsMax?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A position in a listing: rows are ordered newest first, then by uid. */
export interface ListCursor {
  readonly createTimeMs: number;
  readonly uid: SessionUid;
}

export interface ListRequest {
  /** Exact project; undefined means every project. */
  readonly project?: string | undefined;
  /** Only direct children of this session. */
  readonly parent?: SessionUid | undefined;
  /** Only sessions with a turn that has not ended. */
  readonly openTurn?: boolean | undefined;
  /** Only sessions with an approval call that has no receipt. */
  readonly openApproval?: boolean | undefined;
  /** Only sessions created at or after this time. */
  readonly sinceMs?: number | undefined;
  /** Deleted ones too; default false. */
  readonly includeDeleted?: boolean | undefined;
  /** Only deleted ones whose last change is no younger than this time. */
  readonly deletedBeforeMs?: number | undefined;
  readonly after?: ListCursor | undefined;
  readonly limit: number;
  readonly signal?: AbortSignal | undefined;
}

export interface ListPage {
  readonly rows: readonly SessionRow[];
  /** Where the next page begins; undefined when this is the last. */
  readonly next: ListCursor | undefined;
}

/** A fork: children that share the parent's records 1…atSeq and begin with a FORK marker of their own. */
export interface ForkRequest {
  readonly parent: SessionUid;
  /** Set: the fork happens only while the parent's head is here. */
  readonly expectedLastSeq?: Seq | undefined;
  /** 1 to the parent's head. */
  readonly atSeq: Seq;
  /** The parent's projection at `atSeq`, from which the children's start. */
  readonly projection: Projection;
  readonly children: readonly ForkedChild[];
}

/** One child of a fork. */
export interface ForkedChild {
  readonly seed: SessionSeed;
  readonly marker: NewEvent;
  /** What the child's row tells of its compute from the start: the memory that it was forked with. */
  readonly compute?: ComputeRef | undefined;
}

export type ForkOutcome =
  | { readonly kind: "forked"; readonly rows: readonly SessionRow[] }
  | { readonly kind: "not-found" }
  | { readonly kind: "deleted" }
  | { readonly kind: "past-head"; readonly lastSeq: Seq }
  | { readonly kind: "conflict"; readonly lastSeq: Seq }
  | { readonly kind: "name-taken"; readonly name: string };

/** What became of the storage of a deleted session. */
export type ReclaimOutcome =
  /** The session is gone: its row, its records and what was beside them. */
  | { readonly kind: "reclaimed" }
  /** Records 1…keptSeq stay, since children share them, and the row stays for them. There is nothing more to remove now. */
  | { readonly kind: "kept"; readonly keptSeq: Seq }
  /** As much as one transaction removes is gone, and there is more. */
  | { readonly kind: "more"; readonly keptSeq: Seq }
  | { readonly kind: "not-deleted" }
  | { readonly kind: "not-found" };

/** Records that another journal sealed, for a session of this one. */
export interface AdoptRequest {
  /** The session. The first adoption creates it; later ones must bring the same seed. */
  readonly seed: SessionSeed;
  /**
   * Set iff the session is a fork. The projection is the parent's at `forkSeq`, and is used only when the session is created. It may
   * be at an earlier seq, for a session that has no records of its own and stands between others: its children share no more.
   */
  readonly parent: { readonly uid: SessionUid; readonly forkSeq: Seq; readonly projection: Projection } | undefined;
  /** The last record that is here; for a session that is to be created that of the parent's projection, or none. */
  readonly after: Head;
  /** The records that follow it, in order; empty for creating alone. */
  readonly records: readonly SealedRecord[];
}

export type AdoptOutcome =
  | {
      readonly kind: "adopted";
      readonly row: SessionRow;
      /** Whether this call created the session. */
      readonly created: boolean;
    }
  /** The head is not `after`. */
  | { readonly kind: "conflict"; readonly lastSeq: Seq }
  /** The records are no continuation of the chain; none of them was taken. */
  | { readonly kind: "broken"; readonly fault: ChainFault }
  /** The parent is not here, or its record at the fork is not the one that it should be. */
  | { readonly kind: "no-parent" }
  /** Another session has this uid: its seed or its parent differ. */
  | { readonly kind: "uid-taken" }
  /** A turn of the session runs. */
  | { readonly kind: "held"; readonly holder: HostId }
  | { readonly kind: "deleted" };

export type CompleteOutcome =
  | { readonly kind: "completed"; readonly rows: readonly SessionRow[] }
  /** One of the sessions is not here (any more), or was reclaimed. */
  | { readonly kind: "not-found"; readonly session: SessionUid }
  | { readonly kind: "name-taken"; readonly session: SessionUid; readonly name: string };

/** Leases that are to go on. */
export interface RenewRequest {
  readonly holder: HostId;
  readonly leaseMs: number;
  readonly sessions: readonly { readonly session: SessionUid; readonly fence: Fence }[];
  readonly signal?: AbortSignal | undefined;
}

/**
 * Told of a commit: the records that became durable, in order. `records` is empty for a change of the row alone. It is called
 * synchronously after the commit, must not throw and must return quickly.
 */
export type CommitListener = (records: readonly StoredRecord[]) => void;

/** A journal of sessions. */
export interface JournalStore extends AsyncDisposable {
  /** A short name for logs: `memory`, `sqlite`, `postgres`. */
  readonly name: string;
  create(seed: SessionSeed, options?: StoreCallOptions): Promise<CreateOutcome>;
  /** The row of a session, deleted ones included; undefined for an unknown uid. */
  get(session: SessionUid, options?: StoreCallOptions): Promise<SessionRow | undefined>;
  list(request: ListRequest): Promise<ListPage>;
  /** Appends that are made in one tick of the event loop are one transaction. Order of calls is order of records. */
  append(request: AppendRequest, options?: StoreCallOptions): Promise<AppendOutcome>;
  /** Pages of records, in order, through the lineage; nothing for an unknown session or a range past the head. */
  read(request: ReadRequest): AsyncIterable<readonly StoredRecord[]>;
  /** What was kept beside records of the range, by seq. */
  readAsides(request: ReadRequest): Promise<ReadonlyMap<Seq, Uint8Array>>;
  /** The session's own receipts that `query` asks for; none for an unknown session. */
  receipts(session: SessionUid, query?: ReceiptQuery): Promise<readonly Receipt[]>;
  /**
   * Removes storage of a deleted session (or of an incomplete one): all of it, but for the prefix that its children share. A child that
   * was reclaimed itself shares what its own children need. One call removes a bounded number of records from the end, in one
   * transaction: what is left is a prefix at any time, and the next call goes on from there.
   */
  reclaim(session: SessionUid, options?: StoreCallOptions): Promise<ReclaimOutcome>;
  /**
   * Takes over sealed records byte for byte, each verified against the one before it, and the row's fence rises to theirs. A session
   * that is created so is incomplete, which is like deleted, until `complete`. A session that is in use is continued, if no turn of
   * it runs. All records are taken or none.
   */
  adopt(request: AdoptRequest, options?: StoreCallOptions): Promise<AdoptOutcome>;
  /** Lets incomplete sessions be used as their records say: all of them or none. One that is complete stays as it is. */
  complete(sessions: readonly SessionUid[], options?: StoreCallOptions): Promise<CompleteOutcome>;
  /** Creates all children or none. */
  fork(request: ForkRequest, options?: StoreCallOptions): Promise<ForkOutcome>;
  /** Extends leases; returns the sessions whose lease or fence was lost. */
  renew(request: RenewRequest): Promise<readonly SessionUid[]>;
  /** Calls `listener` for every commit of the session on this host (and on others, where the store has more). */
  watch(session: SessionUid, listener: CommitListener): Unwatch;
  /** Resolves when the store can serve, rejects with the reason why it cannot. */
  ready(options?: StoreCallOptions): Promise<void>;
}

/** Ends a watch. Calling it twice does nothing. */
export type Unwatch = () => void;
