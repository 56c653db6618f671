/**
 * One session as its journal tells it, read record by record and judged while it is read: chain, fences, the grammar of turns, and
 * the projection that its row must have.
 */

import { isDeepStrictEqual } from "node:util";
import type { Digest, Seq, SessionUid } from "../../base/index.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import { EventKind } from "../../gen/agentsessions/v1/common_pb.ts";
import {
  createChainVerifier,
  EMPTY_PROJECTION,
  project,
  type ChainVerifier,
  type Projection,
  type SessionRow,
  type StoredRecord,
} from "../../journal/index.ts";
import type { Event } from "../../spi/index.ts";
import { TurnRules } from "./turn-rules.ts";
import { violation, type Violation } from "./violation.ts";

/** A record with its event. */
export interface SeenRecord extends StoredRecord {
  readonly event: Event;
}

/** A session's journal, as far as it was read. */
export class SessionEvidence {
  readonly session: SessionUid;
  readonly records: SeenRecord[] = [];
  /** What the first n records say of the session, by n. */
  readonly projections: Projection[] = [EMPTY_PROJECTION];
  readonly #verifier: ChainVerifier;
  readonly #rules = new TurnRules();

  constructor(session: SessionUid, digest: Digest) {
    this.session = session;
    this.#verifier = createChainVerifier(digest);
  }

  get lastSeq(): Seq {
    return this.records.length as Seq;
  }

  /** The record at `seq`; undefined where there is none. */
  at(seq: number): SeenRecord | undefined {
    return this.records[seq - 1];
  }

  /** Takes the next record. */
  push(record: StoredRecord): readonly Violation[] {
    const place = { session: this.session, seq: record.seq };
    const fault = this.#verifier.push(record);
    if (fault !== undefined) return [violation("I5", place, `the chain breaks (${fault.kind}): ${fault.found} for ${fault.expected}`)];
    const { event } = decodeLogRecord(record.bytes);
    if (event === undefined) return [violation("I5", place, "a record has no event")];
    const faults = this.#rules.push(event).map((what) => violation("turn", place, what));
    const before = this.records.at(-1);
    if (before !== undefined && before.fence > record.fence)
      faults.push(violation("I6", place, "its fence is older than the one before it"));
    this.records.push({ ...record, event });
    this.projections.push(project(this.projections.at(-1) ?? EMPTY_PROJECTION, record.seq, record.contentHash, event));
    return faults;
  }

  /** Holds a row of this session against what was read; a row that is ahead of it is not judged. */
  rowViolations(row: SessionRow): readonly Violation[] {
    const { lastSeq } = row.projection;
    const place = { session: this.session, seq: lastSeq };
    const folded = this.projections[lastSeq];
    if (folded === undefined) return [];
    const faults: Violation[] = [];
    if (!isDeepStrictEqual(row.projection, folded))
      faults.push(violation("I5", place, "the row's projection is not what its journal folds to"));
    const newest = this.at(lastSeq)?.fence ?? 0;
    if (row.fence < newest) faults.push(violation("I6", place, `the row's fence ${row.fence} is older than a record's, ${newest}`));
    return faults;
  }

  /** Holds a child's prefix against its parent's records, as far as these were read before they were reclaimed. */
  prefixViolations(parent: SessionEvidence, forkSeq: Seq): readonly Violation[] {
    for (const own of this.records.slice(0, forkSeq)) {
      const theirs = parent.at(own.seq);
      if (theirs === undefined && own.seq > parent.lastSeq) break;
      if (theirs !== undefined && Buffer.compare(own.bytes, theirs.bytes) === 0) continue;
      return [violation("I5", { session: this.session, seq: own.seq }, "a record of the shared prefix is not the parent's")];
    }
    const marker = this.at(forkSeq + 1);
    if (marker === undefined || marker.event.kind !== EventKind.EVENT_LIFECYCLE) {
      return [violation("I5", { session: this.session, seq: forkSeq + 1 }, "a child does not begin with its FORK marker")];
    }
    if (marker.fence > (this.at(forkSeq)?.fence ?? 0)) return [];
    return [
      violation("I6", { session: this.session, seq: forkSeq + 1 }, "a child does not begin under a higher fence than its prefix has"),
    ];
  }
}

/** The completion of the MODEL_CALL at `callSeq`: its OUTPUT, or the ERROR that it failed with; undefined while there is neither. */
export function completionOf(evidence: SessionEvidence, callSeq: Seq): SeenRecord | undefined {
  const executionId = evidence.at(callSeq)?.event.executionId;
  for (const record of evidence.records.slice(callSeq)) {
    const { kind } = record.event;
    if (kind === EventKind.EVENT_LIFECYCLE) continue;
    if (record.event.executionId !== executionId) return undefined;
    return kind === EventKind.EVENT_OUTPUT || kind === EventKind.EVENT_ERROR ? record : undefined;
  }
  return undefined;
}

/** The MODEL_CALLs of `executionId` for this input hash, in order. */
export function modelCallSeqs(evidence: SessionEvidence, executionId: string, inputHash: string): readonly Seq[] {
  const seqs: Seq[] = [];
  for (const { seq, event } of evidence.records) {
    const asks = event.body.case === "model" && event.executionId === executionId && event.body.value.inputHash === inputHash;
    if (asks) seqs.push(seq);
  }
  return seqs;
}

/** Whether the turn that begins at `startSeq` has the inputs that its start marker says, in its own records. */
export function hasItsInputs(evidence: SessionEvidence, startSeq: Seq): boolean {
  const body = evidence.at(startSeq)?.event.body;
  if (body?.case !== "executionStart") return false;
  let found = 0n;
  for (const { event } of evidence.records.slice(startSeq)) {
    if (event.kind !== EventKind.EVENT_INPUT) break;
    found += 1n;
  }
  return found === body.value.inputCount;
}

/** The seq of the start marker of a turn whose first record is at `seq`: on a cold session RESUME comes before it. */
export function startSeqFrom(evidence: SessionEvidence, seq: number): number {
  return evidence.at(seq)?.kind === EventKind.EVENT_LIFECYCLE ? seq + 1 : seq;
}
