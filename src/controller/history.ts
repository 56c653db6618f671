/**
 * The past of a session as a harness sees it: read in pages when it asks, from the store or from a bounded cache.
 *
 * Invariant: records never change, so what is cached under (session, seq) is true for as long as it is kept.
 */

import type { Seq, SessionUid } from "../base/ids.ts";
import { invariant } from "../base/assert.ts";
import { decodeLogRecord } from "../canon/index.ts";
import type { JournalStore, StoredRecord } from "../journal/index.ts";
import type { MessageOrigins } from "./request-sketch.ts";
import type { Event, History, HistoryPage } from "../spi/index.ts";

/** Decoded events of one session from seq 1 on, without a gap. */
interface CachedPrefix {
  readonly events: Event[];
  bytes: number;
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

  /** The cached events with seqs from `fromSeq` to `toSeq` at most; empty when the first of them is not cached. */
  slice(session: SessionUid, fromSeq: Seq, toSeq: Seq): readonly Event[] {
    const prefix = this.#prefixes.get(session);
    if (prefix === undefined) return [];
    this.#prefixes.delete(session);
    this.#prefixes.set(session, prefix);
    return prefix.events.slice(fromSeq - 1, toSeq);
  }

  /** Keeps `events` when they continue the session's prefix and fit. */
  extend(session: SessionUid, firstSeq: Seq, events: readonly Event[], bytes: number): void {
    const prefix = this.#prefixes.get(session) ?? { events: [], bytes: 0 };
    if (firstSeq !== prefix.events.length + 1 || prefix.bytes + bytes > this.#bytesMax) return;
    for (const event of events) prefix.events.push(event);
    prefix.bytes += bytes;
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

/** What a history is read from. */
export interface HistoryOptions {
  readonly journal: JournalStore;
  readonly cache: HistoryCache;
  /** Told which record each message came from. */
  readonly origins: MessageOrigins;
}

/** A session's history up to `lastSeq`. */
export class JournalHistory implements History {
  readonly lastSeq: Seq;
  readonly #session: SessionUid;
  readonly #journal: JournalStore;
  readonly #cache: HistoryCache;
  readonly #origins: MessageOrigins;

  constructor(session: SessionUid, lastSeq: Seq, options: HistoryOptions) {
    this.lastSeq = lastSeq;
    this.#session = session;
    this.#journal = options.journal;
    this.#cache = options.cache;
    this.#origins = options.origins;
  }

  async *read(options: { fromSeq?: Seq; toSeq?: Seq; signal?: AbortSignal } = {}): AsyncGenerator<HistoryPage, void, undefined> {
    const fromSeq = Math.max(options.fromSeq ?? 1, 1) as Seq;
    const toSeq = Math.min(options.toSeq ?? this.lastSeq, this.lastSeq) as Seq;
    if (fromSeq > toSeq) return;
    const cached = this.#cache.slice(this.#session, fromSeq, toSeq);
    if (cached.length > 0) yield { firstSeq: fromSeq, events: cached };
    const restSeq = (fromSeq + cached.length) as Seq;
    if (restSeq > toSeq) return;
    for await (const records of this.#journal.read({ session: this.#session, fromSeq: restSeq, toSeq, signal: options.signal })) {
      yield this.#decode(records);
    }
  }

  #decode(records: readonly StoredRecord[]): HistoryPage {
    const first = records[0];
    invariant(first !== undefined, "a page of a journal holds at least one record");
    let bytes = 0;
    const events: Event[] = [];
    for (const record of records) {
      const { event } = decodeLogRecord(record.bytes);
      invariant(event !== undefined, "a committed record holds an event");
      events.push(event);
      if (event.body.case === "message") this.#origins.note(event.body.value, this.#session, record.seq);
      bytes += record.bytes.length;
    }
    this.#cache.extend(this.#session, first.seq, events, bytes);
    return { firstSeq: first.seq, events };
  }
}
