/**
 * The journal in one SQLite file.
 *
 * Durability: what is acknowledged is in the file's log and the log is on the disk (WAL, `synchronous=FULL`, read back at every
 * open). It survives `kill -9` and a loss of power, as far as the disk keeps what it says it has written.
 *
 * Faults: a full disk refuses changes with RESOURCE_EXHAUSTED, and they work again by themselves once there is room. After an
 * I/O error, in a damaged file, or once the file was deleted or replaced, the store takes no further change until it is opened
 * again, and `ready` says why; reading goes on as far as the file can be read. Nothing that failed was acknowledged.
 *
 * Leases end with the process: the folder's lock proves that no other one runs turns on this journal.
 */

import { HoldfastError, SEQ_NONE } from "../../base/index.ts";
import type { Clock, Digest, Log, Seq, SessionUid } from "../../base/index.ts";
import {
  GroupCommit,
  listPageOf,
  pageRecordsMaxOf,
  pagesOf,
  rangeOf,
  readFault,
  requireListLimit,
  rowOf,
  segmentsOf,
  StateCache,
  throwIfCancelled,
  WatchHub,
} from "../../journal/index.ts";
import type {
  AdoptOutcome,
  AdoptRequest,
  AppendOutcome,
  AppendRequest,
  CommitListener,
  CompleteOutcome,
  CreateOutcome,
  Draft,
  ForkOutcome,
  ForkRequest,
  JournalStore,
  ListPage,
  ListRequest,
  ReadRequest,
  Receipt,
  ReceiptQuery,
  ReclaimOutcome,
  RenewRequest,
  Segment,
  SessionRow,
  SessionSeed,
  StoreCallOptions,
  StoredRecord,
  Unwatch,
} from "../../journal/index.ts";
import type { HeldFolder } from "./folder.ts";
import type { JournalReader } from "./reader.ts";
import type { WriteGate } from "./write-gate.ts";
import { recordListOf, writeListOf } from "./write-list.ts";

/** The most sessions whose state is kept in memory. */
const STATES_CACHED_MAX = 20_000;

/** What the store is made of. */
export interface SqliteParts {
  readonly held: HeldFolder;
  readonly reader: JournalReader;
  readonly gate: WriteGate;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly log: Log;
}

/** A journal in a file. Made by `openSqliteStore`. */
export class SqliteStore implements JournalStore {
  readonly name = "sqlite";
  readonly #parts: SqliteParts;
  readonly #reader: JournalReader;
  readonly #states: StateCache;
  readonly #hub: WatchHub;
  readonly #commits: GroupCommit;
  #lastKey: number;
  /** How many records of the draft in the making the writer has already. */
  #recordsStaged = 0;
  #closing: Promise<void> | undefined;

  constructor(parts: SqliteParts) {
    const { clock, digest, reader, log } = parts;
    this.#parts = parts;
    this.#reader = reader;
    this.#lastKey = reader.lastKey();
    this.#states = new StateCache(STATES_CACHED_MAX, (session) => reader.state(session));
    this.#hub = new WatchHub(log);
    this.#commits = new GroupCommit({
      clock,
      digest,
      committed: {
        load: (session) => this.#states.load(session),
        nameTaken: (project, name) => reader.nameTaken(project, name),
        hashAt: (key, seq) => reader.hashAt(key, seq),
        originOf: reader.originOf,
        neededSeq: (session) => reader.neededSeq(session),
        sliceFloor: (key, floorSeq, toSeq) => reader.sliceFloor(key, floorSeq, toSeq),
      },
      nextKey: () => ++this.#lastKey,
      schedule: setImmediate,
      stage: (draft) => this.#stage(draft),
      overlaps: () => parts.gate.stages,
      write: (draft) => this.#write(draft),
      publish: (draft) => this.#publish(draft),
      notify: (session, records) => this.#hub.notify(session, records),
      failed: () => this.#states.clear(),
    });
  }

  create(seed: SessionSeed, options?: StoreCallOptions): Promise<CreateOutcome> {
    return this.#commits.run((draft) => draft.create(seed), options);
  }

  append(request: AppendRequest, options?: StoreCallOptions): Promise<AppendOutcome> {
    return this.#commits.run((draft) => draft.append(request), { signal: options?.signal, appendsTo: request.session });
  }

  fork(request: ForkRequest, options?: StoreCallOptions): Promise<ForkOutcome> {
    return this.#commits.run((draft) => draft.fork(request), options);
  }

  reclaim(session: SessionUid, options?: StoreCallOptions): Promise<ReclaimOutcome> {
    return this.#commits.run((draft) => draft.reclaim(session), options);
  }

  adopt(request: AdoptRequest, options?: StoreCallOptions): Promise<AdoptOutcome> {
    return this.#commits.run((draft) => draft.adopt(request), options);
  }

  complete(sessions: readonly SessionUid[], options?: StoreCallOptions): Promise<CompleteOutcome> {
    return this.#commits.run((draft) => draft.complete(sessions), options);
  }

  renew(request: RenewRequest): Promise<readonly SessionUid[]> {
    return this.#commits.run((draft) => draft.renew(request), request);
  }

  async get(session: SessionUid, options?: StoreCallOptions): Promise<SessionRow | undefined> {
    this.#requireOpen(options?.signal);
    const state = this.#states.load(session);
    return state && rowOf(state, this.#parts.clock.nowMs());
  }

  async list(request: ListRequest): Promise<ListPage> {
    this.#requireOpen(request.signal);
    requireListLimit(request);
    if (request.after !== undefined) {
      // A walk through all sessions must not keep the event loop from everybody else.
      await new Promise(setImmediate);
      this.#requireOpen(request.signal);
    }
    const states = this.#reader.list(request).map((state) => this.#states.leased(state));
    return listPageOf(states, request.limit, this.#parts.clock.nowMs());
  }

  async *read(request: ReadRequest): AsyncGenerator<readonly StoredRecord[], void, void> {
    const recordsMax = pageRecordsMaxOf(request);
    const segments = this.#segmentsOf(request);
    const toSeq = segments.at(-1)?.toSeq ?? SEQ_NONE;
    try {
      for (const page of pagesOf(segments, recordsMax, this.#reader.readRun)) {
        yield page;
        if (page.at(-1)?.seq === toSeq) return;
        // A long read must not keep the event loop from everybody else.
        await new Promise(setImmediate);
        this.#requireOpen(request.signal);
      }
    } catch (error) {
      throw readFault(error, this.#states.load(request.session), toSeq);
    }
  }

  async readAsides(request: ReadRequest): Promise<ReadonlyMap<Seq, Uint8Array>> {
    const asides = new Map<Seq, Uint8Array>();
    for (const { key, fromSeq, toSeq } of this.#segmentsOf(request)) {
      for (const { seq, bytes } of this.#reader.asides(key, fromSeq, toSeq)) asides.set(seq, bytes);
    }
    return asides;
  }

  async receipts(session: SessionUid, query: ReceiptQuery = {}): Promise<readonly Receipt[]> {
    this.#requireOpen(undefined);
    const state = this.#states.load(session);
    return state === undefined ? [] : this.#reader.receipts(state.key, query);
  }

  watch(session: SessionUid, listener: CommitListener): Unwatch {
    return this.#hub.watch(session, listener);
  }

  async ready(options?: StoreCallOptions): Promise<void> {
    this.#requireOpen(options?.signal);
    await this.#parts.gate.ready();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#commits.close();
    this.#hub.clear();
    this.#reader.close();
    try {
      await this.#parts.gate.close();
    } finally {
      this.#parts.held[Symbol.dispose]();
    }
  }

  #stage(draft: Draft): void {
    const { gate } = this.#parts;
    if (!gate.stages) return;
    gate.stage(recordListOf(draft, this.#recordsStaged));
    this.#recordsStaged = draft.records.length;
  }

  #write(draft: Draft): Promise<void> | void {
    const staged = this.#recordsStaged;
    this.#recordsStaged = 0;
    return this.#parts.gate.write(writeListOf(draft, staged));
  }

  #publish(draft: Draft): void {
    for (const { after, removed } of draft.changes()) {
      if (removed) this.#states.drop(after.seed.uid);
      else this.#states.publish(after);
    }
  }

  #segmentsOf(request: ReadRequest): Segment[] {
    this.#requireOpen(request.signal);
    const state = this.#states.load(request.session);
    if (state === undefined) return [];
    const { fromSeq, toSeq } = rangeOf(request, state);
    return segmentsOf(state.key, fromSeq, toSeq, this.#reader.originOf);
  }

  #requireOpen(signal: AbortSignal | undefined): void {
    throwIfCancelled(signal);
    if (this.#closing !== undefined) throw new HoldfastError("unavailable", "journal: is closed");
  }
}
