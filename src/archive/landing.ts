/**
 * Where one session of an import lands: on nothing, on what an earlier import left, or on a session that is here.
 *
 * Invariants:
 * - Records that are here already are compared byte for byte, and stay as they are. The first that differs ends the import.
 * - A session that is new stays incomplete, which nobody can use, until the whole import was verified. One that is in use gains what
 *   it lacks in one step, after all of its own records and its head were verified.
 */

import { isSameBytes } from "../base/bytes.ts";
import { HoldfastError } from "../base/errors.ts";
import type { Seq, SessionUid } from "../base/ids.ts";
import { DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import {
  EMPTY_PROJECTION,
  PAGE_BYTES_SOFT_MAX,
  PAGE_RECORDS_DEFAULT,
  projectionAt,
  sameSeed,
  type AdoptOutcome,
  type AdoptRequest,
  type Head,
  type JournalStore,
  type SealedRecord,
  type SessionRow,
  type StoredRecord,
} from "../journal/index.ts";
import { inheritedSeqOf, type SessionFacts } from "./item.ts";
import { CONTINUED_BYTES_MAX, CONTINUED_RECORDS_MAX } from "./limits.ts";

/** What became of a session. */
export type LandingOutcome = "created" | "continued" | "unchanged" | "prefix";

/**
 * Throws unless what is here of the session, if anything, can be what the import has: ALREADY_EXISTS for another session,
 * FAILED_PRECONDITION for one that was deleted here.
 */
export function requireLandable(row: SessionRow | undefined, facts: SessionFacts): void {
  if (row === undefined) return;
  const isSame = sameSeed(row.seed, facts.seed) && row.parent?.uid === facts.parent?.uid && row.parent?.forkSeq === facts.parent?.forkSeq;
  if (!isSame) throw alreadyExists(facts);
  const { keptSeq, projection } = row;
  const isReclaimed = keptSeq !== undefined && keptSeq < projection.lastSeq;
  const isDeleted = keptSeq === undefined && projection.deletionState !== DeletionState.DELETION_ACTIVE;
  if (!isReclaimed && !isDeleted) return;
  const lastSeq = keptSeq ?? projection.lastSeq;
  const isPart = facts.prefixOnly && facts.lastSeq <= lastSeq;
  if (!isPart && (isReclaimed || facts.lastSeq !== lastSeq)) throw deletedHere(facts);
}

/** The landing of one session. */
export class Landing {
  readonly #journal: JournalStore;
  readonly #facts: SessionFacts;
  readonly #row: SessionRow | undefined;
  /** Whether the session has to be made, or stands there without its base. */
  #needsBase: boolean;
  /** Whether what comes on top waits for `settle`, since the session is in use. */
  readonly #isWhole: boolean;
  #present: AsyncIterator<readonly StoredRecord[]> | undefined;
  #page: readonly StoredRecord[] = [];
  #pageAt = 0;
  #after: Head;
  #pending: SealedRecord[] = [];
  #pendingBytes = 0;
  #added = 0;
  #created = false;

  constructor(journal: JournalStore, facts: SessionFacts, row: SessionRow | undefined, base: Head) {
    this.#journal = journal;
    this.#facts = facts;
    this.#row = row;
    this.#isWhole = row !== undefined && row.keptSeq === undefined;
    this.#needsBase = row === undefined || row.projection.lastSeq < base.seq;
    this.#after = row === undefined || this.#needsBase ? base : { seq: row.projection.lastSeq, hash: row.projection.headHash };
    const fromSeq = ((facts.parent?.forkSeq ?? 0) + 1) as Seq;
    const hereSeq = row === undefined ? 0 : (row.keptSeq ?? row.projection.lastSeq);
    const toSeq = Math.min(hereSeq, facts.lastSeq) as Seq;
    if (fromSeq <= toSeq) this.#present = journal.read({ session: facts.seed.uid, fromSeq, toSeq })[Symbol.asyncIterator]();
  }

  get session(): SessionUid {
    return this.#facts.seed.uid;
  }

  /** Whether the session was made by this landing. */
  get created(): boolean {
    return this.#created;
  }

  /** How many records were added. */
  get added(): number {
    return this.#added;
  }

  get outcome(): LandingOutcome {
    if (this.#facts.prefixOnly && !this.#isWhole) return "prefix";
    if (!this.#isWhole) return "created";
    return this.#added > 0 ? "continued" : "unchanged";
  }

  /** Takes the next record, which is verified. */
  async record(bytes: Uint8Array): Promise<void> {
    if (this.#present !== undefined && (await this.#isPresent(bytes))) return;
    this.#pending.push({ bytes });
    this.#pendingBytes += bytes.length;
    if (this.#isWhole) return this.#requireContinuable();
    if (this.#pending.length >= PAGE_RECORDS_DEFAULT || this.#pendingBytes >= PAGE_BYTES_SOFT_MAX) await this.#flush();
  }

  /** Takes what is kept beside the last record. Beside a record that is here, what is here stays. */
  aside(bytes: Uint8Array): void {
    const last = this.#pending.pop();
    if (last !== undefined) this.#pending.push({ ...last, aside: bytes });
  }

  /** Takes over what is left; every record has come. */
  async settle(): Promise<void> {
    await this.#present?.return?.();
    if (this.#pending.length > 0 || this.#needsBase) await this.#flush();
  }

  /** Whether the record is one that is here. Throws ALREADY_EXISTS where another one is. */
  async #isPresent(bytes: Uint8Array): Promise<boolean> {
    while (this.#pageAt >= this.#page.length) {
      const next = await this.#present?.next();
      if (next === undefined || next.done === true) {
        this.#present = undefined;
        return false;
      }
      this.#page = next.value;
      this.#pageAt = 0;
    }
    const here = this.#page[this.#pageAt++];
    if (here === undefined || !isSameBytes(here.bytes, bytes)) throw alreadyExists(this.#facts);
    return true;
  }

  #requireContinuable(): void {
    if (this.#pending.length <= CONTINUED_RECORDS_MAX && this.#pendingBytes <= CONTINUED_BYTES_MAX) return;
    throw new HoldfastError(
      "failed_precondition",
      `session ${this.session}: it is here and in use, and lacks more than the ${CONTINUED_RECORDS_MAX} records or ` +
        `${CONTINUED_BYTES_MAX} bytes by which an import continues a session; delete it, or import it under a server of its own`,
    );
  }

  async #flush(): Promise<void> {
    const records = this.#pending;
    this.#pending = [];
    this.#pendingBytes = 0;
    const parent = await this.#parent(this.#needsBase);
    const outcome = await this.#journal.adopt({ seed: this.#facts.seed, parent, after: this.#after, records });
    if (outcome.kind !== "adopted") throw this.#refusal(outcome);
    if (this.#needsBase && this.#row === undefined && !outcome.created) throw this.#changedMeanwhile();
    this.#needsBase = false;
    this.#created ||= outcome.created;
    this.#added += records.length;
    this.#after = { seq: outcome.row.projection.lastSeq, hash: outcome.row.projection.headHash };
  }

  async #parent(needsBase: boolean): Promise<AdoptRequest["parent"]> {
    const { parent } = this.#facts;
    if (parent === undefined || !needsBase) return parent && { ...parent, projection: EMPTY_PROJECTION };
    const row = await this.#journal.get(parent.uid);
    if (row === undefined) throw this.#changedMeanwhile();
    return { ...parent, projection: await projectionAt(this.#journal, row, inheritedSeqOf(this.#facts)) };
  }

  #refusal(outcome: Exclude<AdoptOutcome, { kind: "adopted" }>): HoldfastError {
    switch (outcome.kind) {
      case "uid-taken":
        return alreadyExists(this.#facts);
      case "deleted":
        return deletedHere(this.#facts);
      case "held":
        return new HoldfastError("aborted", `session ${this.session}: a turn of it is running; retry when it has ended`);
      case "broken":
        return new HoldfastError(
          "invalid_argument",
          `file: session ${this.session}: record ${outcome.fault.seq} is none that it can have`,
          {
            field: "file",
          },
        );
      case "conflict":
      case "no-parent":
        return this.#changedMeanwhile();
    }
  }

  #changedMeanwhile(): HoldfastError {
    return new HoldfastError("aborted", `session ${this.session}: it changed while it was imported; retry`);
  }
}

function alreadyExists({ seed }: SessionFacts): HoldfastError {
  return new HoldfastError("already_exists", `session ${seed.uid}: a session here has this uid, and is not the one in the file`);
}

function deletedHere({ seed }: SessionFacts): HoldfastError {
  return new HoldfastError("failed_precondition", `session ${seed.uid}: it was deleted here; it can be imported once it is reclaimed`);
}
