/**
 * Group commit: everything that is asked in one tick of the event loop, for any number of sessions, becomes one transaction.
 *
 * Invariants:
 * - Items are drafted in the order in which they were asked. An item that is refused or throws is answered alone.
 * - Nobody is answered, and no watcher is told, before the transaction of the answer is durable. An answer that rests on
 *   nothing but reads waits for it too, since it may rest on what an earlier item of the draft did.
 * - One transaction is written at a time. What is asked meanwhile waits, so transactions grow under load.
 * - A draft rests on what is durable and on nothing else. So where a writer works beside this thread, appends to sessions that the
 *   transaction under way does not touch are drafted meanwhile: they stand whether it succeeds or fails. The first item that may
 *   look at more than one session bars all after it until the transaction is over.
 * - If the transaction fails, all its items are rejected and the draft is dropped.
 */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { Clock, Digest } from "../base/ports.ts";
import { throwIfCancelled } from "./cancel.ts";
import { Draft } from "./draft.ts";
import type { Committed } from "./draft-work.ts";
import { APPENDS_QUEUED_MAX, BATCH_BYTES_SOFT_MAX, BATCH_RECORDS_SOFT_MAX } from "./limits.ts";
import { Pace } from "./pace.ts";
import type { StoredRecord } from "./record.ts";
import type { StoreCallOptions } from "./store.ts";

/** Where group commit takes its state from and where it puts its work. */
export interface GroupCommitPorts {
  readonly committed: Committed;
  readonly clock: Clock;
  readonly digest: Digest;
  /** Runs `task` after the current tick of the event loop, as soon as may be. */
  schedule(task: () => void): void;
  nextKey(): number;
  /**
   * Makes a draft durable, whole or not at all. Returns when it is, or a promise of that; throws or rejects with a
   * HoldfastError when it is not.
   */
  write(draft: Draft): Promise<void> | void;
  /**
   * Called while a long draft is still being made: the writer may begin with the records that are in it. They stay in it, and
   * `write` of this draft is what follows.
   */
  stage?(draft: Draft): void;
  /** Whether the writer works beside this thread, so that it is worth drafting while it does. Default: it does not. */
  overlaps?(): boolean;
  /** Takes over the states of a draft that is durable. */
  publish(draft: Draft): void;
  /** Called when a write failed, before its items are answered: what the store remembers may be out of date. */
  failed?(): void;
  /** Tells watchers of a commit. Must not throw. */
  notify(session: SessionUid, records: readonly StoredRecord[]): void;
}

/** How many records a draft gains before the writer is given them. */
const STAGE_RECORDS = 16;
/** How many items must still be to come, for it to be worth a message. */
const STAGE_ITEMS_AHEAD = 8;

/** What `run` is told of the work. */
export interface WorkOptions extends StoreCallOptions {
  /** Set where the work is an append to this session: it looks at nothing else. */
  readonly appendsTo?: SessionUid | undefined;
}

interface Item {
  readonly signal: AbortSignal | undefined;
  readonly appendsTo: SessionUid | undefined;
  draft(draft: Draft): void;
  settle(): void;
  reject(error: HoldfastError): void;
}

/** A draft and those who wait for it. */
interface Batch {
  readonly draft: Draft;
  readonly items: Item[];
  /** How many of its records the writer was given. */
  staged: number;
}

/** The queue in front of a store's writer. */
export class GroupCommit {
  readonly #ports: GroupCommitPorts;
  readonly #pace = new Pace();
  #queue: Item[] = [];
  /** Items from before the queue's that wait for the end of what is written. */
  #held: Item[] = [];
  /** Whether everything that comes is held. */
  #barred = false;
  /** The batch that is made while another is written. */
  #next: Batch | undefined;
  #writing: Draft | undefined;
  #scheduled = false;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(ports: GroupCommitPorts) {
    this.#ports = ports;
  }

  /**
   * Does `work` in the next transaction and resolves with what it returned once that is durable. Rejects with
   * RESOURCE_EXHAUSTED when too much waits already, and with CANCELLED when `signal` fires before the work was begun.
   */
  run<T>(work: (draft: Draft) => T, options?: WorkOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const signal = options?.signal;
      this.#requireRoom(signal);
      let outcome: T;
      this.#queue.push({
        signal,
        appendsTo: options?.appendsTo,
        draft: (draft) => {
          outcome = work(draft);
        },
        settle: () => resolve(outcome),
        reject,
      });
      this.#schedule();
    });
  }

  /** Takes nothing more and resolves once everything that was asked has been answered. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #requireRoom(signal: AbortSignal | undefined): void {
    throwIfCancelled(signal);
    if (this.#closed) throw new HoldfastError("unavailable", "journal: is closed");
    if (this.#queue.length + this.#held.length >= APPENDS_QUEUED_MAX) {
      throw new HoldfastError("resource_exhausted", `journal: ${APPENDS_QUEUED_MAX} changes wait for a commit already; try again later`);
    }
  }

  get #isIdle(): boolean {
    return this.#queue.length === 0 && this.#held.length === 0 && this.#next === undefined && this.#writing === undefined;
  }

  get #overlaps(): boolean {
    return this.#ports.overlaps?.() === true;
  }

  #schedule(): void {
    if (this.#scheduled || (this.#writing !== undefined && !this.#overlaps)) return;
    this.#scheduled = true;
    this.#ports.schedule(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#writing !== undefined) return this.#draftBeside(this.#writing);
    const batch = this.#next ?? this.#newBatch();
    this.#next = undefined;
    this.#draftAll(batch);
    this.#write(batch);
  }

  #newBatch(): Batch {
    const ports = this.#ports;
    const { committed, digest } = ports;
    return { draft: new Draft({ committed, digest, nowMs: ports.clock.nowMs(), nextKey: () => ports.nextKey() }), items: [], staged: 0 };
  }

  #write({ draft, items }: Batch): void {
    const { clock } = this.#ports;
    try {
      const sinceMs = clock.monotonicMs();
      const durable = draft.isEmpty ? undefined : this.#ports.write(draft);
      if (durable === undefined) return this.#succeed(draft, items);
      this.#writing = draft;
      durable.then(
        () => {
          this.#pace.written(clock.monotonicMs() - sinceMs);
          this.#succeed(draft, items);
        },
        (error: unknown) => this.#fail(error, items),
      );
    } catch (error) {
      return this.#fail(error, items);
    }
    if (this.#queue.length > 0) this.#schedule();
  }

  /** Moves items from the queue into a batch until one of them is full or the batch has its share. */
  #draftAll(batch: Batch): void {
    const queue = this.#queue;
    const waiting = batch.items.length + queue.length;
    const share = this.#overlaps ? this.#pace.share(waiting) : waiting;
    const sinceMs = this.#ports.clock.monotonicMs();
    let taken = 0;
    while (taken < queue.length && batch.items.length < share && hasRoom(batch)) {
      this.#draft(batch, queue[taken++]!);
      if (queue.length >= taken + STAGE_ITEMS_AHEAD) this.#stage(batch);
    }
    this.#queue = taken === queue.length ? [] : queue.slice(taken);
    this.#pace.drafted(taken, this.#ports.clock.monotonicMs() - sinceMs);
  }

  /** Drafts, for the next transaction, what does not depend on the one that is written; holds what may. */
  #draftBeside(writing: Draft): void {
    const queue = this.#queue;
    const sinceMs = this.#ports.clock.monotonicMs();
    let taken = 0;
    let drafted = 0;
    for (; taken < queue.length; taken++) {
      const item = queue[taken]!;
      this.#barred ||= item.appendsTo === undefined;
      if (this.#barred || item.appendsTo === undefined || writing.isTouched(item.appendsTo)) {
        this.#held.push(item);
        continue;
      }
      const batch = (this.#next ??= this.#newBatch());
      if (!hasRoom(batch)) break;
      this.#draft(batch, item);
      this.#stage(batch);
      drafted++;
    }
    this.#queue = queue.slice(taken);
    this.#pace.drafted(drafted, this.#ports.clock.monotonicMs() - sinceMs);
  }

  #draft(batch: Batch, item: Item): void {
    try {
      throwIfCancelled(item.signal);
      item.draft(batch.draft);
      batch.items.push(item);
    } catch (error) {
      item.reject(toHoldfastError(error));
    }
  }

  #stage(batch: Batch): void {
    const { length } = batch.draft.records;
    if (length < batch.staged + STAGE_RECORDS) return;
    this.#ports.stage?.(batch.draft);
    batch.staged = length;
  }

  #succeed(draft: Draft, items: readonly Item[]): void {
    this.#ports.publish(draft);
    for (const { session, records } of draft.notices) this.#ports.notify(session, records);
    for (const item of items) item.settle();
    this.#over();
  }

  #fail(error: unknown, items: readonly Item[]): void {
    const fault = toHoldfastError(error);
    this.#ports.failed?.();
    for (const item of items) item.reject(fault);
    this.#over();
  }

  /** Those who were just answered run before the next flush, so what they ask next is in it. */
  #over(): void {
    this.#writing = undefined;
    this.#barred = false;
    if (this.#held.length > 0) this.#queue = this.#held.splice(0).concat(this.#queue);
    if (this.#queue.length > 0 || this.#next !== undefined) return this.#schedule();
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

function hasRoom({ draft }: Batch): boolean {
  return draft.bytes < BATCH_BYTES_SOFT_MAX && draft.recordsTouched < BATCH_RECORDS_SOFT_MAX;
}
