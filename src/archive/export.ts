/**
 * Exporting: sessions of a journal as the items of an export.
 *
 * Invariants:
 * - What is exported of a session ends at the head that its row named when the export began; records that follow are not in it.
 * - Records that are shared stand once. An ancestor is there as far as somebody in the export needs it, and no further.
 * - The same sessions give the same items, on whatever host: rows that came by an import are exported as they were.
 */

import { HoldfastError } from "../base/errors.ts";
import type { Seq, SessionUid } from "../base/ids.ts";
import type { Clock, Digest, Signer } from "../base/ports.ts";
import { DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore, ListCursor, SessionRow, StoredRecord } from "../journal/index.ts";
import { ownRecordsOf, type ArchiveItem, type SessionFacts } from "./item.ts";
import { ARCHIVE_SESSIONS_MAX, ARCHIVE_VERSION } from "./limits.ts";
import { plainHead, signHead } from "./signed-head.ts";

/** What exporting needs. */
export interface ExportContext {
  readonly journal: JournalStore;
  readonly clock: Clock;
  readonly digest: Digest;
  /** Signs the heads; undefined leaves them unsigned. */
  readonly signer?: Signer | undefined;
}

/** What to export. */
export interface ExportRequest {
  /** The session's row. */
  readonly row: SessionRow;
  /** Every session that has an ancestor in common with it, as far as it is not deleted. */
  readonly family: boolean;
  /** Asked for every session before anything of it is read; throws for one that must not be exported. */
  readonly allow?: ((row: SessionRow) => Promise<void>) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A session of an export. */
interface Member {
  readonly row: SessionRow;
  readonly facts: SessionFacts;
}

const PAGE_ROWS = 100;

/**
 * The items of an export, some at a time. Throws FAILED_PRECONDITION for a session of which only a prefix is here,
 * RESOURCE_EXHAUSTED for a family that is too large, ABORTED where a session is reclaimed meanwhile.
 */
export async function* exportSessions(
  context: ExportContext,
  request: ExportRequest,
): AsyncGenerator<readonly ArchiveItem[], void, undefined> {
  const members = await membersOf(context, request);
  yield [{ kind: "header", version: ARCHIVE_VERSION }, ...members.map(({ facts }): ArchiveItem => ({ kind: "session", facts }))];
  let records = 0;
  for (const member of members) {
    for await (const page of ownRecords(context.journal, member, request.signal)) {
      records += page.length;
      yield await withAsides(context.journal, member, page, request.signal);
    }
    if (!member.facts.prefixOnly) yield [await headOf(context, member.row)];
  }
  yield [{ kind: "end", sessions: members.length, records }];
}

async function* ownRecords(
  journal: JournalStore,
  { facts }: Member,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly StoredRecord[], void, undefined> {
  if (ownRecordsOf(facts) === 0) return;
  const { seed, parent, lastSeq } = facts;
  let next = ((parent?.forkSeq ?? 0) + 1) as Seq;
  for await (const page of journal.read({ session: seed.uid, fromSeq: next, toSeq: lastSeq, signal })) {
    next = (next + page.length) as Seq;
    yield page;
  }
  if (next !== lastSeq + 1) throw new HoldfastError("aborted", "session: it was reclaimed while it was exported");
}

async function withAsides(
  journal: JournalStore,
  { facts }: Member,
  page: readonly StoredRecord[],
  signal: AbortSignal | undefined,
): Promise<readonly ArchiveItem[]> {
  const session = facts.seed.uid;
  const asides = await journal.readAsides({ session, fromSeq: page[0]?.seq, toSeq: page.at(-1)?.seq, signal });
  return page.flatMap(({ seq, bytes }): ArchiveItem[] => {
    const aside = asides.get(seq);
    const record: ArchiveItem = { kind: "record", session, bytes };
    return aside === undefined ? [record] : [record, { kind: "aside", session, seq, bytes: aside }];
  });
}

async function headOf({ signer, digest, clock }: ExportContext, { seed, projection }: SessionRow): Promise<ArchiveItem> {
  const head = { seq: projection.lastSeq, hash: projection.headHash };
  if (signer === undefined) return { kind: "head", head: plainHead(seed.uid, head) };
  return { kind: "head", head: await signHead(seed.uid, head, signer, digest, clock.nowMs()) };
}

/** The sessions of an export, parents before their children. */
async function membersOf(context: ExportContext, request: ExportRequest): Promise<readonly Member[]> {
  const { row, family } = request;
  if (row.keptSeq !== undefined) {
    throw new HoldfastError("failed_precondition", "session: only a prefix of it is here, for the sessions that share it", {
      field: "session",
    });
  }
  const line = await lineOf(context.journal, row);
  const rows = family ? await descendants(context.journal, line[0] ?? row, request.signal) : line;
  const members = neededOf(rows, (candidate) => (family ? isWhole(candidate) : false) || candidate.seed.uid === row.seed.uid);
  for (const member of members) await request.allow?.(member.row);
  return members;
}

/** A session's ancestors, the oldest first, and itself. */
async function lineOf(journal: JournalStore, row: SessionRow): Promise<readonly SessionRow[]> {
  const line = [row];
  for (let { parent } = row; parent !== undefined;) {
    const ancestor = await journal.get(parent.uid);
    if (ancestor === undefined) throw new HoldfastError("data_loss", "session: an ancestor of it is missing");
    line.unshift(ancestor);
    ({ parent } = ancestor);
    requireRoom(line.length);
  }
  return line;
}

/** A session and all that was forked from it, deleted ones included, parents before their children. */
async function descendants(journal: JournalStore, root: SessionRow, signal: AbortSignal | undefined): Promise<readonly SessionRow[]> {
  const rows: SessionRow[] = [];
  const waiting = [root];
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    rows.push(row);
    const children: SessionRow[] = [];
    let after: ListCursor | undefined;
    do {
      const page = await journal.list({ parent: row.seed.uid, includeDeleted: true, after, limit: PAGE_ROWS, signal });
      children.push(...page.rows);
      after = page.next;
      requireRoom(rows.length + waiting.length + children.length);
    } while (after !== undefined);
    waiting.push(...children.reverse());
  }
  return rows;
}

function requireRoom(sessions: number): void {
  if (sessions <= ARCHIVE_SESSIONS_MAX) return;
  throw new HoldfastError(
    "resource_exhausted",
    `session: its family has more than ${ARCHIVE_SESSIONS_MAX} sessions; export some of them alone`,
  );
}

/** Those of `rows` that are wanted, whole, and of the others what these share. `rows` has parents before their children. */
function neededOf(rows: readonly SessionRow[], isWanted: (row: SessionRow) => boolean): readonly Member[] {
  const neededSeqs = new Map<SessionUid, Seq>();
  const members: Member[] = [];
  for (const row of rows.toReversed()) {
    const prefixOnly = !isWanted(row);
    const lastSeq = prefixOnly ? neededSeqs.get(row.seed.uid) : row.projection.lastSeq;
    if (lastSeq === undefined) continue;
    const { seed, parent } = row;
    members.push({ row, facts: { seed, parent, lastSeq, prefixOnly } });
    if (parent === undefined) continue;
    const shared = Math.min(parent.forkSeq, lastSeq) as Seq;
    neededSeqs.set(parent.uid, Math.max(neededSeqs.get(parent.uid) ?? 0, shared) as Seq);
  }
  return members.reverse();
}

function isWhole({ keptSeq, projection }: SessionRow): boolean {
  return keptSeq === undefined && projection.deletionState === DeletionState.DELETION_ACTIVE;
}
