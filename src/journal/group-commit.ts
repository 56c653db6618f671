/**
 * Group commit: everything that is asked in one tick of the event loop, for any number of sessions, becomes one transaction.
 *
 * Invariants:
 * - Items are drafted in the order in which they were asked. An item that is refused or throws is answered alone.
 * - Nobody is answered, and no watcher is told, before the transaction of the answer is durable. An answer that rests on
 *   nothing but reads waits for it too, since it may rest on what an earlier item of the draft did.
 * - One transaction is under way at a time. What is asked meanwhile waits, so transactions grow under load.
 * - If the transaction fails, all its items are rejected and the draft is dropped: the next one starts from what is durable.
 */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { Clock, Digest } from "../base/ports.ts";
import { throwIfCancelled } from "./cancel.ts";
import { Draft } from "./draft.ts";
import type { Committed } from "./draft-work.ts";
import { APPENDS_QUEUED_MAX, BATCH_BYTES_SOFT_MAX, BATCH_RECORDS_SOFT_MAX } from "./limits.ts";
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
   * `write` follows in the same tick.
   */
  stage?(draft: Draft): void;
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

interface Item {
  readonly signal: AbortSignal | undefined;
  draft(draft: Draft): void;
  settle(): void;
  reject(error: HoldfastError): void;
}

/** The queue in front of a store's writer. */
export class GroupCommit {
  readonly #ports: GroupCommitPorts;
  #queue: Item[] = [];
  #scheduled = false;
  #writing = false;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(ports: GroupCommitPorts) {
    this.#ports = ports;
  }

  /**
   * Does `work` in the next transaction and resolves with what it returned once that is durable. Rejects with
   * RESOURCE_EXHAUSTED when too much waits already, and with CANCELLED when `signal` fires before the work was begun.
   */
  run<T>(work: (draft: Draft) => T, options?: StoreCallOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const signal = options?.signal;
      this.#requireRoom(signal);
      let outcome: T;
      this.#queue.push({
        signal,
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
    if (this.#queue.length === 0 && !this.#writing) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #requireRoom(signal: AbortSignal | undefined): void {
    throwIfCancelled(signal);
    if (this.#closed) throw new HoldfastError("unavailable", "journal: is closed");
    if (this.#queue.length >= APPENDS_QUEUED_MAX) {
      throw new HoldfastError("resource_exhausted", `journal: ${APPENDS_QUEUED_MAX} changes wait for a commit already; try again later`);
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#writing) return;
    this.#scheduled = true;
    this.#ports.schedule(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const ports = this.#ports;
    const draft = new Draft({
      committed: ports.committed,
      digest: ports.digest,
      nowMs: ports.clock.nowMs(),
      nextKey: () => ports.nextKey(),
    });
    const items = this.#draftItems(draft);
    try {
      const durable = draft.isEmpty ? undefined : this.#ports.write(draft);
      if (durable === undefined) return this.#succeed(draft, items);
      this.#writing = true;
      durable.then(
        () => this.#succeed(draft, items),
        (error: unknown) => this.#fail(error, items),
      );
    } catch (error) {
      this.#fail(error, items);
    }
  }

  /** Moves items from the queue into the draft until one of them is full. Returns those that wait for the draft. */
  #draftItems(draft: Draft): Item[] {
    const drafted: Item[] = [];
    const queue = this.#queue;
    let taken = 0;
    let staged = 0;
    while (taken < queue.length && draft.bytes < BATCH_BYTES_SOFT_MAX && draft.recordsTouched < BATCH_RECORDS_SOFT_MAX) {
      const item = queue[taken++]!;
      try {
        throwIfCancelled(item.signal);
        item.draft(draft);
        drafted.push(item);
      } catch (error) {
        item.reject(toHoldfastError(error));
      }
      if (draft.records.length >= staged + STAGE_RECORDS && queue.length >= taken + STAGE_ITEMS_AHEAD) {
        this.#ports.stage?.(draft);
        staged = draft.records.length;
      }
    }
    this.#queue = taken === queue.length ? [] : queue.slice(taken);
    return drafted;
  }

  #succeed(draft: Draft, items: readonly Item[]): void {
    this.#ports.publish(draft);
    for (const { session, records } of draft.notices) this.#ports.notify(session, records);
    for (const item of items) item.settle();
    this.#next();
  }

  #fail(error: unknown, items: readonly Item[]): void {
    const fault = toHoldfastError(error);
    this.#ports.failed?.();
    for (const item of items) item.reject(fault);
    this.#next();
  }

  /** Those who were just answered run before the next flush, so what they ask next is in it. */
  #next(): void {
    this.#writing = false;
    if (this.#queue.length > 0) return this.#schedule();
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
