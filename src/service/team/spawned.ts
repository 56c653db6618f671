/**
 * What sessions have spawned, as their journals tell it: each one's own calls of `spawn`, in order, and whether each has its answer.
 *
 * Invariants:
 * - Only the session's own records count. What it inherited by a fork its parent spawned.
 * - What is remembered holds while its last record is still the session's: a uid can come back with other records (reclaimed here, then
 *   imported again).
 */

import { SEQ_NONE, type Seq, type SessionUid } from "../../base/ids.ts";
import type { Digest } from "../../base/ports.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import { EventKind, type Event } from "../../gen/agentsessions/v1/common_pb.ts";
import type { JournalStore, SessionRow, StoredRecord } from "../../journal/index.ts";
import { isUnknownOutcome } from "../../spi/index.ts";
import { spawnCallOf, workerUid } from "./spawn-call.ts";
import { namesWorker } from "./spawn-result.ts";

/** One call of `spawn`. */
export interface Spawn {
  readonly key: string;
  readonly callId: string;
  readonly callSeq: Seq;
  readonly isAnswered: boolean;
  /** Whether it spawned something, or may have: it was not refused, denied or left unrun. */
  readonly hasChild: boolean;
}

const KINDS: ReadonlySet<EventKind> = new Set([EventKind.EVENT_EXECUTION_START, EventKind.EVENT_TOOL_CALL, EventKind.EVENT_TOOL_RESULT]);

/** The calls of one session, read on as its journal grows. */
export class Spawns {
  readonly #journal: JournalStore;
  readonly #session: SessionUid;
  /** The last seq that is not the session's own. */
  readonly #inheritedSeq: Seq;
  #calls: Spawn[] = [];
  /** Where the calls of the turn begin that is being read: ids are unique in their turn. */
  #turnAt = 0;
  #readSeq: Seq;
  /** The content hash of the record at `#readSeq`, where that is the session's own. */
  #readHash = "";
  #reading: Promise<void> = Promise.resolve();

  constructor(journal: JournalStore, row: SessionRow) {
    this.#journal = journal;
    this.#session = row.seed.uid;
    this.#inheritedSeq = inheritedSeqOf(row);
    this.#readSeq = this.#inheritedSeq;
  }

  /** Whether the session of `row` begins its own records where this one does: what comes back under a uid may be no fork, or another one. */
  isOf(row: SessionRow): boolean {
    return inheritedSeqOf(row) === this.#inheritedSeq;
  }

  /** The calls up to the head, the oldest first. */
  async read(row: SessionRow): Promise<readonly Spawn[]> {
    const reading = this.#reading.then(async () => {
      const toSeq = row.projection.lastSeq;
      if (!(await this.#readOn(toSeq))) {
        this.#forget();
        await this.#readOn(toSeq);
      }
      return [...this.#calls];
    });
    this.#reading = reading.then(
      () => undefined,
      () => undefined,
    );
    return reading;
  }

  /** Reads on from the last record that was read; false where that is another one by now, or gone. */
  async #readOn(headSeq: Seq): Promise<boolean> {
    const lastReadSeq = this.#readSeq;
    let isSame = lastReadSeq === this.#inheritedSeq;
    const fromSeq = isSame ? ((lastReadSeq + 1) as Seq) : lastReadSeq;
    // A row may be older than what was read since.
    const toSeq = headSeq > lastReadSeq ? headSeq : lastReadSeq;
    if (toSeq < fromSeq) return isSame;
    for await (const page of this.#journal.read({ session: this.#session, fromSeq, toSeq })) {
      for (const record of page) {
        if (record.seq === lastReadSeq) isSame = record.contentHash === this.#readHash;
        if (!isSame) return false;
        if (record.seq > lastReadSeq) this.#takeRecord(record);
      }
    }
    return isSame;
  }

  #takeRecord({ kind, bytes, seq, contentHash }: StoredRecord): void {
    const event = KINDS.has(kind) ? decodeLogRecord(bytes).event : undefined;
    if (event !== undefined) this.#take(event, seq);
    this.#readSeq = seq;
    this.#readHash = contentHash;
  }

  #forget(): void {
    this.#calls = [];
    this.#turnAt = 0;
    this.#readSeq = this.#inheritedSeq;
    this.#readHash = "";
  }

  #take(event: Event, seq: Seq): void {
    const call = spawnCallOf(event);
    if (call !== undefined)
      this.#calls.push({ key: call.idempotencyKey, callId: call.id, callSeq: seq, isAnswered: false, hasChild: true });
    if (event.body.case === "executionStart") this.#turnAt = this.#calls.length;
    if (event.body.case !== "result") return;
    const result = event.body.value;
    const at = this.#calls.findLastIndex(({ callId }, index) => index >= this.#turnAt && callId === result.id);
    const answered = this.#calls[at];
    if (answered === undefined || answered.isAnswered) return;
    this.#calls[at] = { ...answered, isAnswered: true, hasChild: namesWorker(result) || isUnknownOutcome(result) };
  }
}

function inheritedSeqOf({ parent }: SessionRow): Seq {
  return parent?.forkSeq ?? SEQ_NONE;
}

/** The call that spawned `worker`; undefined where none of the session's did. */
export async function findSpawn(
  journal: JournalStore,
  spawner: SessionRow,
  worker: SessionUid,
  digest: Digest,
): Promise<Spawn | undefined> {
  const spawns = await new Spawns(journal, spawner).read(spawner);
  return spawns.findLast(({ key }) => workerUid(spawner.seed.uid, key, digest) === worker);
}

/** Sessions whose calls are remembered, so that their journals are read once. */
const REMEMBERED_MAX = 256;

/** The calls of sessions, remembered. */
export class RememberedSpawns {
  readonly #journal: JournalStore;
  /** The least recently used first. */
  readonly #remembered = new Map<SessionUid, Spawns>();

  constructor(journal: JournalStore) {
    this.#journal = journal;
  }

  /** A session's calls up to the head that its row tells of, the oldest first. */
  async of(row: SessionRow): Promise<readonly Spawn[]> {
    const { uid } = row.seed;
    const known = this.#remembered.get(uid);
    const spawns = known?.isOf(row) === true ? known : new Spawns(this.#journal, row);
    this.#remembered.delete(uid);
    this.#remembered.set(uid, spawns);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > REMEMBERED_MAX && oldest !== undefined) this.#remembered.delete(oldest);
    return spawns.read(row);
  }

  /** How many children a session has that were asked for before the call under `key`: those it may still get are among them. */
  async countBefore(row: SessionRow, key: string): Promise<number> {
    const keys = new Set((await this.of(row)).filter(({ hasChild }) => hasChild).map((spawn) => spawn.key));
    const place = [...keys].indexOf(key);
    return place < 0 ? keys.size : place;
  }
}
