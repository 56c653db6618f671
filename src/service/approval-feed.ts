/**
 * The feed of approvals: whoever listens is told of every request and decision that this host commits.
 *
 * Invariants:
 * - Nothing is told before it is durable, and no append waits for a listener.
 * - It says no more than the journal: what was missed, with the process or by a listener, is found there (`approvalNewsSince`).
 */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Seq, SessionUid } from "../base/ids.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { eventAt } from "../controller/index.ts";
import { EventKind, type ApprovalResult, type Event } from "../gen/agentsessions/v1/common_pb.ts";
import type { AppendRequest, JournalStore, ListCursor, SessionRow, StoredRecord } from "../journal/index.ts";
import type { IdentityRef, ToolCall } from "../spi/index.ts";

/** The approval records of one append. */
export interface ApprovalNote {
  readonly session: SessionUid;
  readonly records: readonly StoredRecord[];
}

/** Called after a commit; it must return quickly and must not throw. */
export type ApprovalListener = (note: ApprovalNote) => void;

/** Tells of the requests and decisions of one journal. */
export class ApprovalFeed {
  readonly #listeners = new Set<ApprovalListener>();

  /** The journal as it is to be used, so that the feed hears of what is appended. */
  over(journal: JournalStore): JournalStore {
    return {
      name: journal.name,
      append: (request, options) => {
        const appended = journal.append(request, options);
        if (this.#listeners.size > 0 && speaksOfApprovals(request)) void this.#tell(request.session, appended);
        return appended;
      },
      create: (seed, options) => journal.create(seed, options),
      get: (session, options) => journal.get(session, options),
      list: (request) => journal.list(request),
      read: (request) => journal.read(request),
      readAsides: (request) => journal.readAsides(request),
      receipts: (session, query) => journal.receipts(session, query),
      reclaim: (session, options) => journal.reclaim(session, options),
      adopt: (request, options) => journal.adopt(request, options),
      complete: (sessions, options) => journal.complete(sessions, options),
      fork: (request, options) => journal.fork(request, options),
      renew: (request) => journal.renew(request),
      watch: (session, listener) => journal.watch(session, listener),
      ready: (options) => journal.ready(options),
      [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
    };
  }

  /** Calls `listener` for what is committed from now on, until the returned function is called. */
  listen(listener: ApprovalListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async #tell(session: SessionUid, appended: ReturnType<JournalStore["append"]>): Promise<void> {
    const outcome = await appended.catch(() => undefined);
    if (outcome?.kind !== "appended") return;
    const records = outcome.records.filter(({ kind }) => isApprovalKind(kind));
    for (const listener of this.#listeners) listener({ session, records });
  }
}

function speaksOfApprovals({ events }: AppendRequest): boolean {
  return events.some(({ event }) => isApprovalKind(event.kind));
}

function isApprovalKind(kind: EventKind): boolean {
  return kind === EventKind.EVENT_APPROVAL_REQUEST || kind === EventKind.EVENT_APPROVAL_RESULT;
}

/** A request that waits for a decision, or a decision. */
export interface ApprovalNews {
  readonly kind: "requested" | "decided";
  readonly row: SessionRow;
  /** The record that it tells of. */
  readonly seq: Seq;
  readonly timeMs: number;
  readonly executionId: string;
  readonly toolCallId: string;
  readonly requestSeq: Seq;
  /** Undefined where the journal has no such call. */
  readonly call: ToolCall | undefined;
  readonly reason: string;
  /** Set for a decision. */
  readonly decision: { readonly approved: boolean; readonly actor: IdentityRef | undefined } | undefined;
}

/** How far back from a request its call is looked for. */
const CALL_LOOK_BACK = 512;

/**
 * What one approval record says. Undefined for a request that was decided in the same append: nobody was asked.
 */
export async function approvalNewsOf(journal: JournalStore, row: SessionRow, record: StoredRecord): Promise<ApprovalNews | undefined> {
  const { event } = decodeLogRecord(record.bytes);
  if (event?.body.case === "approval") {
    const next = await eventAt(journal, row.seed.uid, (record.seq + 1) as Seq);
    if (next?.body.case === "approvalResult" && next.body.value.requestSeq === BigInt(record.seq)) return undefined;
    const { toolCallId, reason } = event.body.value;
    return newsOf(journal, row, { event, seq: record.seq, toolCallId, requestSeq: record.seq, reason, decision: undefined });
  }
  if (event?.body.case !== "approvalResult") return undefined;
  return newsOf(journal, row, { event, seq: record.seq, ...decided(event.body.value, event.actor) });
}

function decided({ toolCallId, requestSeq, approved, reason }: ApprovalResult, actor: IdentityRef | undefined) {
  return { toolCallId, requestSeq: Number(requestSeq) as Seq, reason, decision: { approved, actor } };
}

async function newsOf(
  journal: JournalStore,
  row: SessionRow,
  { event, ...facts }: Pick<ApprovalNews, "seq" | "toolCallId" | "requestSeq" | "reason" | "decision"> & { readonly event: Event },
): Promise<ApprovalNews> {
  const kind = facts.decision === undefined ? "requested" : "decided";
  const call = await callBefore(journal, row.seed.uid, facts.requestSeq, facts.toolCallId);
  const timeMs = event.ts === undefined ? 0 : timestampMs(event.ts);
  return { kind, row, timeMs, executionId: event.executionId, call, ...facts };
}

async function callBefore(journal: JournalStore, session: SessionUid, requestSeq: Seq, toolCallId: string): Promise<ToolCall | undefined> {
  const last = Math.max(1, requestSeq - CALL_LOOK_BACK);
  for (let seq = requestSeq - 1; seq >= last; seq--) {
    const body = (await eventAt(journal, session, seq as Seq))?.body;
    if (body?.case === "tool" && body.value.id === toolCallId) return body.value;
    if (body?.case === "executionStart") return undefined;
  }
  return undefined;
}

const PAGE_ROWS = 200;
const PAGE_RECORDS = 256;

/**
 * The requests and decisions of all sessions that were recorded at or after a time, those of one session together and the newest first. Only
 * sessions that changed since are read, from their heads back.
 */
export async function* approvalNewsSince(
  journal: JournalStore,
  sinceMs: number,
  signal: AbortSignal,
): AsyncGenerator<ApprovalNews, void, undefined> {
  let after: ListCursor | undefined;
  do {
    const page = await journal.list({ includeDeleted: true, after, limit: PAGE_ROWS, signal });
    for (const row of page.rows) if (row.updateTimeMs >= sinceMs) yield* newsOfSession(journal, row, sinceMs, signal);
    after = page.next;
  } while (after !== undefined);
}

async function* newsOfSession(
  journal: JournalStore,
  row: SessionRow,
  sinceMs: number,
  signal: AbortSignal,
): AsyncGenerator<ApprovalNews, void, undefined> {
  const session = row.seed.uid;
  const firstSeq = (row.parent?.forkSeq ?? 0) + 1;
  for (let toSeq: number = row.projection.lastSeq; toSeq >= firstSeq; toSeq -= PAGE_RECORDS) {
    const fromSeq = Math.max(firstSeq, toSeq - PAGE_RECORDS + 1);
    let isOlder = false;
    const found: StoredRecord[] = [];
    for await (const records of journal.read({ session, fromSeq: fromSeq as Seq, toSeq: toSeq as Seq, signal })) {
      for (const record of records) {
        if (record.seq === fromSeq) isOlder = timeOf(record) < sinceMs;
        if (isApprovalKind(record.kind)) found.push(record);
      }
    }
    for (const record of found.toReversed()) {
      const news = timeOf(record) < sinceMs ? undefined : await approvalNewsOf(journal, row, record);
      if (news !== undefined) yield news;
    }
    if (isOlder) return;
  }
}

function timeOf({ bytes }: StoredRecord): number {
  const ts = decodeLogRecord(bytes).event?.ts;
  return ts === undefined ? 0 : timestampMs(ts);
}
