/**
 * Reads the journals of a world as they grow, from the store itself and not through what a host sees of it, and judges every record
 * once. What is durable is known at once, by the store's own notices; what is in it, at the next `refresh`.
 */

import { HoldfastError, SEQ_NONE, type Digest, type Seq, type SessionUid } from "../../base/index.ts";
import type { JournalStore, SessionRow, Unwatch } from "../../journal/index.ts";
import type { Ledger } from "./ledger.ts";
import { SessionEvidence } from "./session-evidence.ts";
import { violation, type Violation } from "./violation.ts";

/** Every session of a world. What it finds broken goes into the ledger. */
export class JournalMonitor {
  readonly #digest: Digest;
  readonly #ledger: Ledger;
  readonly #sessions = new Map<SessionUid, SessionEvidence>();
  readonly #durable = new Map<SessionUid, Seq>();
  readonly #touched = new Set<SessionUid>();
  readonly #watches = new Map<SessionUid, Unwatch>();
  #journal: JournalStore;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(journal: JournalStore, ledger: Ledger, digest: Digest) {
    this.#journal = journal;
    this.#ledger = ledger;
    this.#digest = digest;
  }

  /** What was read of every session. */
  get sessions(): ReadonlyMap<SessionUid, SessionEvidence> {
    return this.#sessions;
  }

  /** What was read of a session; an empty one where nothing was. */
  of(session: SessionUid): SessionEvidence {
    const evidence = this.#sessions.get(session) ?? new SessionEvidence(session, this.#digest);
    this.#sessions.set(session, evidence);
    return evidence;
  }

  /** Begins to listen for what becomes durable of a session that exists or is about to. */
  track(session: SessionUid): void {
    if (this.#watches.has(session)) return;
    const unwatch = this.#journal.watch(session, (records) => {
      this.#touched.add(session);
      const last = records.at(-1);
      if (last !== undefined) this.#durable.set(session, last.seq);
    });
    this.#watches.set(session, unwatch);
  }

  /** The last seq that is durable now. */
  durableSeq(session: SessionUid): Seq {
    return this.#durable.get(session) ?? SEQ_NONE;
  }

  /** Goes on with a store that was opened again on the same journals. What was read before must be there still. */
  async reopened(journal: JournalStore): Promise<void> {
    this.#journal = journal;
    const tracked = [...this.#watches.keys()];
    this.#watches.clear();
    for (const session of tracked) {
      this.track(session);
      this.#touched.add(session);
      const row = await journal.get(session);
      this.#durable.set(session, row?.projection.lastSeq ?? SEQ_NONE);
    }
  }

  /** Reads what is new in every session that has changed since, and judges it. */
  async refreshTouched(): Promise<void> {
    const touched = [...this.#touched];
    this.#touched.clear();
    for (const session of touched) await this.refresh(session);
  }

  /** Reads what is new in a session and judges it, with its row. */
  refresh(session: SessionUid): Promise<void> {
    const refreshed = this.#tail.then(() => this.#readable(session, () => this.#read(session)));
    this.#tail = refreshed;
    return refreshed;
  }

  /** Reads every session again from its first record: what was read once must be there still, byte for byte. */
  async rereadAll(): Promise<void> {
    for (const evidence of this.#sessions.values()) {
      await this.#readable(evidence.session, () => this.#reread(evidence));
    }
  }

  async #readable(session: SessionUid, read: () => Promise<void>): Promise<void> {
    try {
      await read();
    } catch (error) {
      const code = error instanceof HoldfastError ? error.code : String(error);
      this.#found([violation("I8", { session }, `its journal cannot be read: ${code}`)]);
    }
  }

  async #reread(evidence: SessionEvidence): Promise<void> {
    const { session } = evidence;
    const row = await this.#journal.get(session);
    if (row === undefined) return;
    let seq = 0;
    for await (const page of this.#journal.read({ session })) {
      for (const record of page) {
        seq += 1;
        const before = evidence.at(seq);
        if (before !== undefined && record.seq === seq && Buffer.compare(before.bytes, record.bytes) === 0) continue;
        return this.#found([violation("I8", { session, seq }, "a record is not what it was when it was read before")]);
      }
    }
    const due = row.keptSeq ?? evidence.lastSeq;
    if (seq !== due) this.#found([violation("I8", { session, seq }, `${seq} records can be read where there were ${due}`)]);
  }

  async #read(session: SessionUid): Promise<void> {
    const row = await this.#journal.get(session);
    if (row === undefined) return;
    const evidence = this.of(session);
    const { lastSeq } = evidence;
    for await (const page of this.#journal.read({ session, fromSeq: (evidence.lastSeq + 1) as Seq })) {
      for (const record of page) this.#found(evidence.push(record));
    }
    if (evidence.lastSeq < (row.keptSeq ?? row.projection.lastSeq)) {
      const what = `the row's last_seq is ${row.projection.lastSeq}, but no such record can be read`;
      this.#found([violation("I8", { session, seq: evidence.lastSeq }, what)]);
    }
    if (row.projection.lastSeq < lastSeq) {
      this.#found([violation("I8", { session, seq: row.projection.lastSeq }, `the journal ends here, and ${lastSeq} records were in it`)]);
    }
    this.#found(evidence.rowViolations(row));
    if (lastSeq === 0) await this.#prefix(row, evidence);
  }

  async #prefix({ parent }: SessionRow, evidence: SessionEvidence): Promise<void> {
    if (parent === undefined) return;
    if (this.of(parent.uid).lastSeq < parent.forkSeq) await this.#read(parent.uid);
    this.#found(evidence.prefixViolations(this.of(parent.uid), parent.forkSeq));
  }

  #found(violations: readonly Violation[]): void {
    this.#ledger.found.push(...violations);
  }
}
