/**
 * Live streams of a session: committed records in order, each once, and deltas in their place between them.
 *
 * Invariants:
 * - A watcher that is behind is served from the store; its queue is bounded. It may lose deltas, never a record.
 * - A completion in progress is told once every record before it was, as it is then; what its reader was too slow for is told together.
 * - A delta is delivered after every record that was committed when it was made, and dropped once its successor is out.
 */

import { invariant } from "../base/assert.ts";
import { HoldfastError } from "../base/errors.ts";
import { SEQ_NONE, type Seq, type SessionUid } from "../base/ids.ts";
import type { JournalStore, StoredRecord } from "../journal/index.ts";
import type { Delta } from "../spi/index.ts";
import type { FollowItem, LiveItem, WatchRequest } from "./contract.ts";
import type { DeltaHub } from "./deltas.ts";
import type { PartialCompletion, Partials } from "./partials.ts";

/** What a watch needs. */
export interface LiveSources {
  readonly journal: JournalStore;
  readonly deltas: DeltaHub;
  readonly queueItemsMax: number;
  readonly queueBytesMax: number;
}

/** A sleeping consumer and whoever wakes it. */
class Bell {
  #ring: () => void = () => undefined;
  #rung = false;

  ring(): void {
    this.#rung = true;
    this.#ring();
  }

  /** Resolves at the next ring, or at once when it rang since the last wait. */
  async wait(): Promise<void> {
    if (!this.#rung) await new Promise<void>((resolve) => (this.#ring = resolve));
    this.#rung = false;
  }
}

/** What a watcher has not been given yet. */
class WatchQueue {
  /** The next seq to deliver. */
  nextSeq: Seq;
  /** The store has records that are not in the queue. */
  behind = true;
  #records: StoredRecord[] = [];
  #recordBytes = 0;
  #deltaBytes = 0;
  #deltas: { readonly afterSeq: Seq; readonly delta: Delta }[] = [];
  #committedSeq: Seq = SEQ_NONE;
  readonly #itemsMax: number;
  readonly #bytesMax: number;

  constructor(nextSeq: Seq, sources: LiveSources) {
    this.nextSeq = nextSeq;
    this.#itemsMax = sources.queueItemsMax;
    this.#bytesMax = sources.queueBytesMax;
  }

  /** The session's head is at least here. */
  reached(seq: Seq): void {
    if (seq > this.#committedSeq) this.#committedSeq = seq;
  }

  committed(records: readonly StoredRecord[]): void {
    for (const record of records) {
      this.reached(record.seq);
      if (this.behind || record.seq < this.nextSeq) continue;
      if (record.seq !== this.nextSeq + this.#records.length || this.#full(record.bytes.length)) {
        this.#fallBehind();
        continue;
      }
      this.#records.push(record);
      this.#recordBytes += record.bytes.length;
    }
  }

  chunk(delta: Delta): void {
    const bytes = delta.chunk.length * 3;
    if (this.#full(bytes)) {
      this.#deltas = [];
      this.#deltaBytes = 0;
    }
    this.#deltas.push({ afterSeq: this.#committedSeq, delta });
    this.#deltaBytes += bytes;
  }

  /** The next delta whose place is here; stale ones are dropped. */
  takeDelta(): Delta | undefined {
    for (let first = this.#deltas[0]; first !== undefined; first = this.#deltas[0]) {
      if (first.afterSeq >= this.nextSeq) return undefined;
      this.#deltas.shift();
      this.#deltaBytes -= first.delta.chunk.length * 3;
      if (first.afterSeq + 1 === this.nextSeq) return first.delta;
    }
    return undefined;
  }

  takeRecord(): StoredRecord | undefined {
    const record = this.#records.shift();
    if (record === undefined) return undefined;
    this.#recordBytes -= record.bytes.length;
    this.nextSeq = (record.seq + 1) as Seq;
    return record;
  }

  /** The store has been read up to `nextSeq - 1`: whether that is all there is. */
  caughtUp(): boolean {
    this.behind = this.nextSeq <= this.#committedSeq;
    return !this.behind;
  }

  #full(bytes: number): boolean {
    return this.#records.length + this.#deltas.length >= this.#itemsMax || this.#recordBytes + this.#deltaBytes + bytes > this.#bytesMax;
  }

  #fallBehind(): void {
    this.behind = true;
    this.#records = [];
    this.#recordBytes = 0;
  }
}

/** Watches a session from a seq on; see `Controller.watch`. Ends quietly when the signal fires. */
export function watchSession(sources: LiveSources, request: WatchRequest): AsyncGenerator<LiveItem, void, undefined> {
  return itemsOf<never>(sources, request, { listen: () => () => undefined, next: () => undefined });
}

/** Follows a session from a seq on; see `Controller.follow`. Ends quietly when the signal fires. */
export async function* followSession(
  sources: LiveSources & { readonly partials: Partials },
  request: Omit<WatchRequest, "deltas">,
): AsyncGenerator<FollowItem, void, undefined> {
  const { session } = request;
  let told: PartialCompletion | undefined;
  const next = (nextSeq: Seq): FollowItem | undefined => {
    const partial = sources.partials.of(session);
    if (partial === undefined || partial === told || partial.afterSeq + 1 !== nextSeq) return undefined;
    told = partial;
    return { kind: "partial", partial };
  };
  const between = { listen: (ring: () => void) => sources.partials.listen(session, ring), next };
  for await (const item of itemsOf(sources, { ...request, deltas: false }, between)) if (item.kind !== "delta") yield item;
}

/** What is told between the records. */
interface Between<Item> {
  /** Rings when there may be more; until the returned function is called. */
  readonly listen: (ring: () => void) => () => void;
  /** What there is to tell before the record with this seq, once all before it were delivered. */
  readonly next: (nextSeq: Seq) => Item | undefined;
}

async function* itemsOf<Item>(
  sources: LiveSources,
  request: WatchRequest,
  between: Between<Item>,
): AsyncGenerator<LiveItem | Item, void, undefined> {
  const bell = new Bell();
  const queue = new WatchQueue(request.fromSeq, sources);
  const endings = [
    sources.journal.watch(request.session, (records) => {
      queue.committed(records);
      bell.ring();
    }),
    ...(request.deltas === false ? [] : [listen(sources.deltas, request.session, queue, bell)]),
    between.listen(() => bell.ring()),
    onAbort(request.signal, () => bell.ring()),
  ];
  // The promise may live much longer than this watch, and keeps its callbacks until it settles: so they hold next to nothing.
  const until: { seq?: Seq; ring?: (() => void) | undefined } = { ring: () => bell.ring() };
  void request.until?.then((seq) => {
    until.seq = seq;
    until.ring?.();
  });
  try {
    queue.reached(await headSeq(sources.journal, request.session));
    while (!isAborted(request.signal)) {
      for await (const item of delivered(sources.journal, queue, request)) {
        // A watcher that is behind may come upon the turns after the last record that it is to be told.
        if (until.seq !== undefined && (item.kind === "record" ? item.record.seq : queue.nextSeq) > until.seq) return;
        yield item;
      }
      if (until.seq !== undefined && queue.nextSeq > until.seq) return;
      const item = between.next(queue.nextSeq);
      // While it was taken more may have come.
      if (item !== undefined) yield item;
      else if (!queue.behind) await bell.wait();
    }
  } catch (error) {
    if (!isAborted(request.signal)) throw error;
  } finally {
    until.ring = undefined;
    for (const end of endings) end();
  }
}

/** Everything that can be delivered now. */
async function* delivered(journal: JournalStore, queue: WatchQueue, request: WatchRequest): AsyncGenerator<LiveItem, void, undefined> {
  if (queue.behind) yield* caughtUp(journal, queue, request);
  while (!isAborted(request.signal)) {
    const delta = queue.takeDelta();
    if (delta !== undefined) {
      yield { kind: "delta", delta };
      continue;
    }
    const record = queue.takeRecord();
    if (record === undefined) return;
    yield { kind: "record", record };
  }
}

async function* caughtUp(journal: JournalStore, queue: WatchQueue, request: WatchRequest): AsyncGenerator<LiveItem, void, undefined> {
  const { session, signal } = request;
  while (!isAborted(signal) && !queue.caughtUp()) {
    const beforeSeq = queue.nextSeq;
    for await (const page of journal.read({ session, fromSeq: queue.nextSeq, signal })) {
      for (const record of page) {
        for (let delta = queue.takeDelta(); delta !== undefined; delta = queue.takeDelta()) yield { kind: "delta", delta };
        queue.nextSeq = (record.seq + 1) as Seq;
        yield { kind: "record", record };
      }
    }
    if (queue.nextSeq > beforeSeq || isAborted(signal)) continue;
    await refuseReclaimed(journal, session);
    invariant(false, "a record that was committed can be read");
  }
}

async function headSeq(journal: JournalStore, session: SessionUid): Promise<Seq> {
  const row = await journal.get(session);
  return row?.keptSeq ?? row?.projection.lastSeq ?? SEQ_NONE;
}

/** A deleted session may be reclaimed while somebody still follows it. */
async function refuseReclaimed(journal: JournalStore, session: SessionUid): Promise<void> {
  const row = await journal.get(session);
  if (row !== undefined && row.keptSeq === undefined) return;
  throw new HoldfastError("aborted", "session: it was reclaimed while it was read");
}

function listen(deltas: DeltaHub, session: SessionUid, queue: WatchQueue, bell: Bell): () => void {
  return deltas.listen(session, (delta) => {
    queue.chunk(delta);
    bell.ring();
  });
}

function onAbort(signal: AbortSignal | undefined, task: () => void): () => void {
  signal?.addEventListener("abort", task, { once: true });
  return () => signal?.removeEventListener("abort", task);
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
