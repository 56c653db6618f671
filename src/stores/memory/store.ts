/**
 * A journal in memory: for tests, for trying things out, and for whoever wants sessions that end with the process.
 *
 * It checks, seals and answers with the same code as the durable stores; only where rows live differs. What it acknowledges
 * survives as long as the process does, and no longer.
 */

import { HoldfastError, SEQ_NONE, SILENT_LOG } from "../../base/index.ts";
import type { Clock, Digest, Log, Seq, SessionUid } from "../../base/index.ts";
import {
  GroupCommit,
  isListed,
  isUnsettled,
  listPageOf,
  pageRecordsMaxOf,
  pagesOf,
  rangeOf,
  readFault,
  requireListLimit,
  rowOf,
  segmentsOf,
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
  SessionState,
  StoreCallOptions,
  StoredRecord,
  Unwatch,
} from "../../journal/index.ts";
import { Shelves } from "./shelves.ts";

/** What a memory store needs. */
export interface MemoryStoreOptions {
  readonly clock: Clock;
  readonly digest: Digest;
  /** Default: nothing is logged. */
  readonly log?: Log | undefined;
}

/** A new, empty journal in memory. */
export function createMemoryStore(options: MemoryStoreOptions): JournalStore {
  return new MemoryStore(options);
}

class MemoryStore implements JournalStore {
  readonly name = "memory";
  readonly #clock: Clock;
  readonly #shelves = new Shelves();
  readonly #hub: WatchHub;
  readonly #commits: GroupCommit;
  #closed = false;

  constructor({ clock, digest, log = SILENT_LOG }: MemoryStoreOptions) {
    this.#clock = clock;
    this.#hub = new WatchHub(log);
    this.#commits = new GroupCommit({
      clock,
      digest,
      committed: this.#shelves,
      nextKey: this.#shelves.nextKey,
      schedule: queueMicrotask,
      write: () => undefined,
      publish: (draft) => this.#shelves.publish(draft),
      notify: (session, records) => this.#hub.notify(session, records),
    });
  }

  create(seed: SessionSeed, options?: StoreCallOptions): Promise<CreateOutcome> {
    return this.#commits.run((draft) => draft.create(seed), options);
  }

  append(request: AppendRequest, options?: StoreCallOptions): Promise<AppendOutcome> {
    return this.#commits.run((draft) => draft.append(request), options);
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
    const state = this.#shelves.load(session);
    return state && rowOf(state, this.#clock.nowMs());
  }

  async list(request: ListRequest): Promise<ListPage> {
    this.#requireOpen(request.signal);
    requireListLimit(request);
    const states: SessionState[] = [];
    for (const state of this.#shelves.listed(request.after)) {
      if (isListed(state, request)) states.push(state);
      if (states.length > request.limit) break;
    }
    return listPageOf(states, request.limit, this.#clock.nowMs());
  }

  async *read(request: ReadRequest): AsyncGenerator<readonly StoredRecord[], void, void> {
    const recordsMax = pageRecordsMaxOf(request);
    const segments = this.#segmentsOf(request);
    try {
      for (const page of pagesOf(segments, recordsMax, this.#shelves.readRun)) {
        yield page;
        this.#requireOpen(request.signal);
      }
    } catch (error) {
      throw readFault(error, this.#shelves.load(request.session), segments.at(-1)?.toSeq ?? SEQ_NONE);
    }
  }

  async readAsides(request: ReadRequest): Promise<ReadonlyMap<Seq, Uint8Array>> {
    const asides = new Map<Seq, Uint8Array>();
    for (const { key, fromSeq, toSeq } of this.#segmentsOf(request)) {
      for (let seq = fromSeq; seq <= toSeq; seq = (seq + 1) as Seq) {
        const aside = this.#shelves.asideAt(key, seq);
        if (aside !== undefined) asides.set(seq, aside);
      }
    }
    return asides;
  }

  async receipts(session: SessionUid, { key }: ReceiptQuery = {}): Promise<readonly Receipt[]> {
    this.#requireOpen(undefined);
    const state = this.#shelves.load(session);
    if (state === undefined) return [];
    const receipts = this.#shelves.receiptsOf(state.key);
    if (key !== undefined) return [receipts.get(key)].filter((receipt) => receipt !== undefined);
    return [...receipts.values()].filter(isUnsettled).toSorted((left, right) => left.callSeq - right.callSeq);
  }

  watch(session: SessionUid, listener: CommitListener): Unwatch {
    return this.#hub.watch(session, listener);
  }

  async ready(options?: StoreCallOptions): Promise<void> {
    this.#requireOpen(options?.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#commits.close();
    this.#closed = true;
    this.#hub.clear();
  }

  #segmentsOf(request: ReadRequest): Segment[] {
    this.#requireOpen(request.signal);
    const state = this.#shelves.load(request.session);
    if (state === undefined) return [];
    const { fromSeq, toSeq } = rangeOf(request, state);
    return segmentsOf(state.key, fromSeq, toSeq, this.#shelves.originOf);
  }

  #requireOpen(signal: AbortSignal | undefined): void {
    throwIfCancelled(signal);
    if (this.#closed) throw new HoldfastError("unavailable", "journal: is closed");
  }
}
