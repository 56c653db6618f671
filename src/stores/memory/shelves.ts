/** Where the memory store keeps sessions and their records. */

import type { Seq, SessionUid } from "../../base/index.ts";
import { compareListed, isLive, sharedSeq, sliceFloorOf } from "../../journal/index.ts";
import type {
  Committed,
  Draft,
  ListCursor,
  OriginOf,
  ReadRun,
  Receipt,
  RecordSize,
  SessionState,
  StoredRecord,
} from "../../journal/index.ts";

/** One session: its state and what it wrote itself. A forked one's first records are on its parent's shelf. */
interface Shelf {
  state: SessionState;
  readonly records: StoredRecord[];
  readonly asides: Map<Seq, Uint8Array>;
  readonly receipts: Map<string, Receipt>;
}

/** The shelves of all sessions. */
export class Shelves implements Committed {
  readonly #byUid = new Map<SessionUid, Shelf>();
  readonly #byKey = new Map<number, Shelf>();
  /** In the reverse order of listings, so that a new session is usually added at the end. */
  readonly #oldestFirst: Shelf[] = [];
  readonly #names = new Set<string>();
  #keys = 0;

  readonly nextKey = (): number => this.#keys++;

  load(session: SessionUid): SessionState | undefined {
    return this.#byUid.get(session)?.state;
  }

  nameTaken(project: string, name: string): boolean {
    return this.#names.has(nameKey(project, name));
  }

  readonly originOf: OriginOf = (key) => this.#byKey.get(key)?.state.parent;

  hashAt(key: number, seq: Seq): string | undefined {
    return this.#run(key, seq, 1)[0]?.contentHash;
  }

  neededSeq(session: SessionUid): Seq {
    let needed = 0;
    for (const { state } of this.#byKey.values()) if (state.parent?.uid === session) needed = Math.max(needed, sharedSeq(state));
    return needed as Seq;
  }

  sliceFloor(key: number, floorSeq: Seq): Seq {
    return sliceFloorOf(newestFirst(this.#byKey.get(key)?.records ?? [], floorSeq), floorSeq);
  }

  /** The run of records that `pagesOf` asks for. */
  readonly readRun: ReadRun = (key, fromSeq, toSeq, recordsMax, bytesMax) => {
    const run: StoredRecord[] = [];
    let bytes = 0;
    for (const record of this.#run(key, fromSeq, Math.min(recordsMax, toSeq - fromSeq + 1))) {
      run.push(record);
      bytes += record.bytes.length;
      if (bytes >= bytesMax) break;
    }
    return run;
  };

  asideAt(key: number, seq: Seq): Uint8Array | undefined {
    return this.#byKey.get(key)?.asides.get(seq);
  }

  receiptsOf(key: number): ReadonlyMap<string, Receipt> {
    return this.#byKey.get(key)?.receipts ?? new Map();
  }

  /** States in the order of listings, from the first one after `after`. */
  *listed(after: ListCursor | undefined): Generator<SessionState, void, void> {
    const from = after === undefined ? this.#oldestFirst.length : this.#placeOf(after);
    for (let index = from - 1; index >= 0; index--) yield this.#oldestFirst[index]!.state;
  }

  /** Takes over what a draft did. */
  publish(draft: Draft): void {
    for (const { before, after } of draft.changes()) {
      this.#rename(before, after);
      const shelf = this.#byKey.get(after.key);
      if (shelf === undefined) this.#add(after);
      else shelf.state = after;
    }
    for (const { key, record, aside } of draft.records) {
      const shelf = this.#byKey.get(key)!;
      shelf.records.push(record);
      if (aside !== undefined) shelf.asides.set(record.seq, aside);
    }
    for (const { key, receipt } of draft.receipts) this.#byKey.get(key)!.receipts.set(receipt.key, receipt);
    for (const { key, aboveSeq } of draft.cuts) this.#cut(this.#byKey.get(key)!, aboveSeq);
    for (const { after, removed } of draft.changes()) if (removed) this.#remove(after);
  }

  #rename(before: SessionState | undefined, after: SessionState): void {
    const { project, name } = after.seed;
    if (name === "") return;
    if (isLive(after)) this.#names.add(nameKey(project, name));
    else if (before !== undefined && isLive(before)) this.#names.delete(nameKey(project, name));
  }

  #cut({ records, asides }: Shelf, aboveSeq: Seq): void {
    for (let last = records.at(-1); last !== undefined && last.seq > aboveSeq; last = records.at(-1)) {
      asides.delete(last.seq);
      records.pop();
    }
  }

  #remove({ key, seed }: SessionState): void {
    const shelf = this.#byKey.get(key);
    this.#byKey.delete(key);
    this.#byUid.delete(seed.uid);
    const place = this.#oldestFirst.findIndex((other) => other === shelf);
    if (place >= 0) this.#oldestFirst.splice(place, 1);
  }

  #add(state: SessionState): void {
    const shelf: Shelf = { state, records: [], asides: new Map(), receipts: new Map() };
    this.#byUid.set(state.seed.uid, shelf);
    this.#byKey.set(state.key, shelf);
    this.#oldestFirst.splice(this.#placeOf(state.seed), 0, shelf);
  }

  /** How many sessions come after `cursor` in a listing. */
  #placeOf(cursor: ListCursor): number {
    let low = 0;
    let high = this.#oldestFirst.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareListed(this.#oldestFirst[middle]!.state.seed, cursor) > 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #run(key: number, fromSeq: number, count: number): StoredRecord[] {
    const shelf = this.#byKey.get(key);
    if (shelf === undefined) return [];
    const from = fromSeq - 1 - (shelf.state.parent?.forkSeq ?? 0);
    return from < 0 ? [] : shelf.records.slice(from, from + count);
  }
}

/** The sizes of records above a seq. */
function* newestFirst(records: readonly StoredRecord[], floorSeq: Seq): Generator<RecordSize, void, void> {
  for (let index = records.length - 1; index >= 0; index--) {
    const { seq, bytes } = records[index]!;
    if (seq <= floorSeq) return;
    yield { seq, bytes: bytes.length };
  }
}

function nameKey(project: string, name: string): string {
  return `${project}\u0000${name}`;
}
