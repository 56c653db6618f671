/**
 * WatchApprovals: a project's requests as they come and are decided.
 *
 * Invariants: nothing is told before it is durable, and nothing of what happens after the listing began is missed: it is heard of first and
 * listed then, and what comes both ways is told once.
 */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { HoldfastError } from "../base/errors.ts";
import { ApprovalRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import {
  ApprovalUpdateSchema,
  DecidedApprovalSchema,
  ListedApprovalsSchema,
  PendingApprovalSchema,
  type ApprovalUpdate,
  type PendingApproval,
} from "../gen/holdfast/v1/calls_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import { approvalNewsOf, type ApprovalFeed, type ApprovalNews, type ApprovalNote } from "./approval-feed.ts";

/** Appends that a watcher may be behind. */
const NOTES_MAX = 1_000;

/** What a watch needs. */
export interface WatchApprovalsOptions {
  readonly journal: JournalStore;
  readonly feed: ApprovalFeed;
  readonly project: string;
  readonly signal: AbortSignal;
  /** The requests that wait now. */
  readonly waiting: () => AsyncIterable<PendingApproval>;
}

/** See `ToolCallsService.watchApprovals`. */
export async function* watchApprovals(options: WatchApprovalsOptions): AsyncGenerator<ApprovalUpdate, void, undefined> {
  const { journal, feed, project, signal, waiting } = options;
  using heard = new Heard(signal);
  const unlisten = feed.listen((note) => heard.put(note));
  try {
    const listed = new Set<string>();
    for await (const pending of waiting()) {
      listed.add(keyOf(pending.session, pending.ref?.requestSeq ?? 0n));
      yield create(ApprovalUpdateSchema, { update: { case: "requested", value: pending } });
    }
    yield create(ApprovalUpdateSchema, { update: { case: "listed", value: create(ListedApprovalsSchema) } });
    for (;;) {
      const { session, records } = await heard.take();
      const row = await journal.get(session);
      if (row === undefined || row.seed.project !== project) continue;
      for (const record of records) {
        const news = await approvalNewsOf(journal, row, record);
        if (news === undefined) continue;
        const isTold = news.decision === undefined && listed.delete(keyOf(session, BigInt(news.requestSeq)));
        if (!isTold) yield updateOf(news);
      }
    }
  } finally {
    unlisten();
  }
}

function keyOf(session: string, requestSeq: bigint): string {
  return `${session} ${requestSeq}`;
}

/** What was heard of and not told yet. */
class Heard implements Disposable {
  readonly #signal: AbortSignal;
  readonly #notes: ApprovalNote[] = [];
  #isLost = false;
  readonly #ended = (): void => this.#wake();
  #wake: () => void = () => undefined;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", this.#ended, { once: true });
  }

  /** A signal that lives as long as the server would keep it otherwise. */
  [Symbol.dispose](): void {
    this.#signal.removeEventListener("abort", this.#ended);
  }

  put(note: ApprovalNote): void {
    if (this.#notes.length >= NOTES_MAX) this.#isLost = true;
    else this.#notes.push(note);
    this.#wake();
  }

  async take(): Promise<ApprovalNote> {
    for (;;) {
      this.#signal.throwIfAborted();
      if (this.#isLost) throw new HoldfastError("aborted", "approvals: the caller is too slow for what happens; watch anew");
      const next = this.#notes.shift();
      if (next !== undefined) return next;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

function updateOf(news: ApprovalNews): ApprovalUpdate {
  const { row, seq, timeMs, executionId, toolCallId, requestSeq, reason, call, decision } = news;
  const { uid: session, name, harness } = row.seed;
  const ref = create(ApprovalRefSchema, { executionId, toolCallId, requestSeq: BigInt(requestSeq) });
  if (decision === undefined) {
    const value = create(PendingApprovalSchema, { session, sessionName: name, harness, parentUid: row.parent?.uid ?? "", ref, reason });
    value.requestTime = timestampFromMs(timeMs);
    if (call !== undefined) value.call = call;
    return create(ApprovalUpdateSchema, { update: { case: "requested", value } });
  }
  const { approved, actor } = decision;
  const value = create(DecidedApprovalSchema, { session, ref, approved, reason, decisionSeq: BigInt(seq) });
  value.decisionTime = timestampFromMs(timeMs);
  if (actor !== undefined) value.actor = actor;
  return create(ApprovalUpdateSchema, { update: { case: "decided", value } });
}
