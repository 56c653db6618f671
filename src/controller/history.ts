/**
 * The past of a session as a harness sees it: read in pages when it asks, from the store or from a bounded cache.
 *
 * Invariants:
 * - Records never change, so what is cached of a session is true while that session lives. A uid can come back with other records
 *   (reclaimed here, then imported again), so a prefix is used only if its last record is still the one that it ended with.
 * - Events that are handed out are frozen: they are shared by every turn that reads them.
 */

import type { Seq, SessionUid } from "../base/ids.ts";
import { invariant } from "../base/assert.ts";
import { deeplyFrozen } from "../base/frozen.ts";
import { decodeLogRecord } from "../canon/index.ts";
import type { Head, JournalStore, NewEvent, StoredRecord } from "../journal/index.ts";
import type { MessageOrigins } from "./request-sketch.ts";
import { settledEvent } from "./shared-content.ts";
import type { Event, History, HistoryPage } from "../spi/index.ts";

/** Decoded events of one session from seq 1 on, without a gap. */
interface CachedPrefix {
  readonly events: Event[];
  bytes: number;
  /** The content hash of the last of them. */
  hash: string;
}

/** A bounded cache of decoded prefixes; the least recently used session goes first. */
export class HistoryCache {
  readonly #bytesMax: number;
  readonly #prefixes = new Map<SessionUid, CachedPrefix>();
  #bytes = 0;

  constructor(options: { readonly bytesMax: number }) {
    this.#bytesMax = options.bytesMax;
  }

  /** Cached bytes, by the size of their encoding. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The last record of what is cached of a session; undefined when nothing is. */
  endOf(session: SessionUid): Head | undefined {
    const prefix = this.#prefixes.get(session);
    return prefix === undefined ? undefined : { seq: prefix.events.length as Seq, hash: prefix.hash };
  }

  /** Forgets a session. */
  forget(session: SessionUid): void {
    this.#bytes -= this.#prefixes.get(session)?.bytes ?? 0;
    this.#prefixes.delete(session);
  }

  /** The cached events with seqs from `fromSeq` to `toSeq` at most; empty when the first of them is not cached. */
  slice(session: SessionUid, fromSeq: Seq, toSeq: Seq): readonly Event[] {
    const prefix = this.#prefixes.get(session);
    if (prefix === undefined) return [];
    this.#prefixes.delete(session);
    this.#prefixes.set(session, prefix);
    return prefix.events.slice(fromSeq - 1, toSeq);
  }

  /** Keeps `events` when they continue the session's prefix and fit. */
  extend(session: SessionUid, firstSeq: Seq, events: readonly Event[], last: { readonly bytes: number; readonly hash: string }): void {
    const { bytes, hash } = last;
    const prefix = this.#prefixes.get(session) ?? { events: [], bytes: 0, hash: "" };
    if (firstSeq !== prefix.events.length + 1 || prefix.bytes + bytes > this.#bytesMax) return;
    for (const event of events) prefix.events.push(event);
    prefix.bytes += bytes;
    prefix.hash = hash;
    this.#bytes += bytes;
    this.#prefixes.delete(session);
    this.#prefixes.set(session, prefix);
    this.#shrink();
  }

  #shrink(): void {
    for (const [session, prefix] of this.#prefixes) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#prefixes.delete(session);
      this.#bytes -= prefix.bytes;
    }
  }
}

/** Records that were committed, and the events that they were made of. */
export interface CommittedEvents {
  readonly records: readonly StoredRecord[];
  readonly events: readonly NewEvent[];
}

/** What a history is read from. */
export interface HistoryOptions {
  readonly journal: JournalStore;
  readonly cache: HistoryCache;
  /** Told which record each message came from. */
  readonly origins: MessageOrigins;
  /** The last record of the history, where that is known: a cache that ends with it need not be compared with the journal. */
  readonly head?: Head | undefined;
  /** The records that stand behind it already: the start of the turn. */
  readonly started?: CommittedEvents | undefined;
}

/** A session's history up to `lastSeq`. */
export class JournalHistory implements History {
  readonly lastSeq: Seq;
  readonly #session: SessionUid;
  readonly #journal: JournalStore;
  readonly #cache: HistoryCache;
  readonly #origins: MessageOrigins;
  readonly #head: Head | undefined;
  #started: CommittedEvents | undefined;
  #isRead = false;

  constructor(session: SessionUid, lastSeq: Seq, options: HistoryOptions) {
    this.lastSeq = lastSeq;
    this.#session = session;
    this.#journal = options.journal;
    this.#cache = options.cache;
    this.#origins = options.origins;
    this.#head = options.head;
    this.#started = options.started;
  }

  /**
   * Keeps what the turn has committed for the next one, where this one has read its history: an event that was normalised is what would be
   * read of its record.
   */
  follow(committed: CommittedEvents): void {
    if (!this.#isRead) return;
    const started = this.#started;
    this.#started = undefined;
    if (started !== undefined) this.#keep(started);
    this.#keep(committed);
  }

  #keep({ records, events }: CommittedEvents): void {
    const first = records[0];
    const end = this.#cache.endOf(this.#session);
    if (first === undefined || first.seq !== (end?.seq ?? 0) + 1) return;
    this.#extend(
      records,
      events.map(({ event }) => settledEvent(event)),
    );
  }

  /** Keeps events that are handed out for good. */
  #extend(records: readonly StoredRecord[], events: readonly Event[]): void {
    let bytes = 0;
    for (let index = 0; index < records.length; index += 1) {
      const record = records[index]!;
      const { body } = events[index]!;
      if (body.case === "message" || body.case === "result") this.#origins.note(body.value, this.#session, record.seq);
      bytes += record.bytes.length;
    }
    this.#cache.extend(this.#session, records[0]!.seq, events, { bytes, hash: records.at(-1)!.contentHash });
  }

  async *read(options: { fromSeq?: Seq; toSeq?: Seq; signal?: AbortSignal } = {}): AsyncGenerator<HistoryPage, void, undefined> {
    const fromSeq = Math.max(options.fromSeq ?? 1, 1) as Seq;
    const toSeq = Math.min(options.toSeq ?? this.lastSeq, this.lastSeq) as Seq;
    this.#isRead = true;
    if (fromSeq > toSeq) return;
    const range = { fromSeq, toSeq, signal: options.signal };
    const end = this.#cache.endOf(this.#session);
    if (end !== undefined && end.seq === this.lastSeq && end.seq === this.#head?.seq && end.hash === this.#head.hash) {
      return yield { firstSeq: fromSeq, events: this.#cache.slice(this.#session, fromSeq, toSeq) };
    }
    if (end !== undefined && (yield* this.#readOn(end, range))) return;
    for await (const records of this.#journal.read({ session: this.#session, ...range })) yield this.#decode(records);
  }

  /**
   * What is cached up to `end`, and what the store has behind it: read together with the record that says whether the journal still is the one
   * that was cached. False where nothing was handed out; a cache that is of another journal is forgotten.
   */
  async *#readOn(end: Head, range: { fromSeq: Seq; toSeq: Seq; signal?: AbortSignal | undefined }): AsyncGenerator<HistoryPage, boolean> {
    const { fromSeq, toSeq, signal } = range;
    // Taken before anything is waited for: others read the session too, and the cache goes on, or gives it up.
    const cached = this.#cache.slice(this.#session, fromSeq, toSeq);
    const lastSeq = cached.length === 0 ? end.seq : (Math.max(end.seq, toSeq) as Seq);
    let isKnown = false;
    for await (const records of this.#journal.read({ session: this.#session, fromSeq: end.seq, toSeq: lastSeq, signal })) {
      if (!isKnown && records[0]?.contentHash !== end.hash) break;
      if (isKnown) {
        yield this.#decode(records);
        continue;
      }
      isKnown = true;
      if (cached.length > 0) yield { firstSeq: fromSeq, events: cached };
      if (records.length > 1) yield this.#decode(records.slice(1));
    }
    if (!isKnown) this.#cache.forget(this.#session);
    return isKnown && cached.length > 0;
  }

  #decode(records: readonly StoredRecord[]): HistoryPage {
    const first = records[0];
    invariant(first !== undefined, "a page of a journal holds at least one record");
    const events = records.map(({ bytes }) => {
      // A decoded event has views of the bytes that it was read from, and those may be what a journal in memory keeps.
      const { event } = decodeLogRecord(new Uint8Array(bytes));
      invariant(event !== undefined, "a committed record holds an event");
      return deeplyFrozen(event);
    });
    this.#extend(records, events);
    return { firstSeq: first.seq, events };
  }
}
