/**
 * Acknowledged appends against the journal: what was acknowledged is there (I8), whole or not at all (I6), under the fence of the one
 * writer that the fence was minted for (I6), and nothing is there that nobody wrote.
 */

import { equals } from "@bufbuild/protobuf";
import type { SessionUid } from "../../base/index.ts";
import { EventSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { StoredRecord } from "../../journal/index.ts";
import type { Ledger, SeenAppend } from "./ledger.ts";
import type { SessionEvidence } from "./session-evidence.ts";
import { violation, type Violation } from "./violation.ts";

/** The journals of a world, by session. */
export type Journals = ReadonlyMap<SessionUid, SessionEvidence>;

/** What is wrong with one acknowledged append, as soon as it was acknowledged. */
export function acknowledgedViolations(append: SeenAppend, journals: Journals): readonly Violation[] {
  if (append.answer !== "appended") return [];
  const { session, writer, fence, records } = append;
  const found: Violation[] = [];
  for (const record of records) {
    const durable = journals.get(session)?.at(record.seq);
    const place = { session, seq: record.seq };
    if (durable === undefined) found.push(violation("I8", place, "a record was acknowledged and is not in the journal"));
    else if (!sameRecord(durable, record)) found.push(violation("I8", place, "the journal's record is not the one that was acknowledged"));
  }
  if (writer.kind !== "claim" && writer.fence !== fence) {
    found.push(violation("I6", { session }, `an append under fence ${writer.fence} was taken under ${fence}`));
  }
  if (records.some((record) => record.fence !== fence)) {
    found.push(violation("I6", { session }, "an append's records have another fence than the append"));
  }
  return found;
}

function sameRecord(left: StoredRecord, right: StoredRecord): boolean {
  return left.contentHash === right.contentHash && left.fence === right.fence && Buffer.compare(left.bytes, right.bytes) === 0;
}

/** What is wrong with the writers of a whole run. */
export function writerViolations(ledger: Ledger, journals: Journals): readonly Violation[] {
  const found: Violation[] = [];
  const acknowledged = acknowledgedSeqs(ledger);
  for (const append of ledger.appends)
    found.push(...acknowledgedViolations(append, journals), ...partViolations(append, journals, acknowledged));
  return [...found, ...ownerViolations(ledger), ...strangerViolations(ledger, journals)];
}

/** The records that were acknowledged to somebody, by session. */
function acknowledgedSeqs(ledger: Ledger): ReadonlyMap<SessionUid, ReadonlySet<number>> {
  const seqs = new Map<SessionUid, Set<number>>();
  for (const { session, records } of ledger.appends) {
    const own = seqs.get(session) ?? new Set<number>();
    seqs.set(session, own);
    for (const { seq } of records) own.add(seq);
  }
  return seqs;
}

/** Of an append that was not acknowledged, either everything is there or nothing. Two hosts may ask for like events; one gets them. */
function partViolations(
  { answer, session, expectedLastSeq, events }: SeenAppend,
  journals: Journals,
  acknowledged: ReadonlyMap<SessionUid, ReadonlySet<number>>,
): readonly Violation[] {
  if (answer === "appended" || expectedLastSeq === undefined || events.length === 0) return [];
  const there = events.map((event, index) => {
    const seq = expectedLastSeq + index + 1;
    const record = journals.get(session)?.at(seq);
    return record !== undefined && acknowledged.get(session)?.has(seq) !== true && equals(EventSchema, record.event, event);
  });
  const refused = answer !== "pending" && answer !== "threw";
  const count = there.filter((is) => is).length;
  if (count === 0 || (count === events.length && !refused)) return [];
  const what = refused ? `of an append that was refused as ${answer}` : "of an append of";
  return [violation("I6", { session, seq: expectedLastSeq + 1 }, `${what} ${events.length} events ${count} are in the journal`)];
}

/** Each fence was minted for one host, and nobody else wrote under it. */
function ownerViolations(ledger: Ledger): readonly Violation[] {
  const owners = new Map<string, string>();
  const found: Violation[] = [];
  for (const { session, host, writer, answer, fence } of ledger.appends) {
    if (answer !== "appended" || fence === undefined) continue;
    const key = `${session} ${fence}`;
    const owner = owners.get(key);
    if (writer.kind === "claim" && writer.keep === undefined && owner !== undefined) {
      found.push(violation("I6", { session }, `fence ${fence} was minted twice`));
    }
    if (writer.kind === "claim" && owner === undefined) owners.set(key, host);
    else if (owner !== host)
      found.push(violation("I6", { session }, `host ${host} wrote under fence ${fence}, which is ${owner ?? "nobody"}'s`));
  }
  return found;
}

/** Every record that a session wrote itself is one that some append asked for. */
function strangerViolations(ledger: Ledger, journals: Journals): readonly Violation[] {
  const asked = new Map<SessionUid, Set<number>>();
  for (const { session, records, expectedLastSeq, events, answer } of ledger.appends) {
    const seqs = asked.get(session) ?? new Set<number>();
    asked.set(session, seqs);
    for (const { seq } of records) seqs.add(seq);
    if (answer === "appended" || expectedLastSeq === undefined) continue;
    for (const index of events.keys()) seqs.add(expectedLastSeq + index + 1);
  }
  const forked = new Map(ledger.forks.flatMap(({ children, atSeq }) => children.map((child) => [child, atSeq + 1] as const)));
  const found: Violation[] = [];
  for (const [session, { records }] of journals) {
    const own = records.slice(forked.get(session) ?? 0);
    const stranger = own.find(({ seq }) => asked.get(session)?.has(seq) !== true);
    if (stranger !== undefined) found.push(violation("I6", { session, seq: stranger.seq }, "nobody asked for this record"));
  }
  return found;
}
