/**
 * Tail: a session's records from a cursor on, and its deltas while a turn runs here.
 *
 * Invariants: the first item is the Session; records come in order, each once, and only after they are durable (I8). A tail
 * from the seq after the last one that a client has goes on without loss or repetition.
 */

import { HoldfastError } from "../base/errors.ts";
import type { Seq, SessionUid } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import { decodeLogRecord } from "../canon/index.ts";
import type { Controller } from "../controller/index.ts";
import { EventKind, Lifecycle_Kind } from "../gen/agentsessions/v1/common_pb.ts";
import { DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import type { TailRequest } from "../gen/holdfast/v1/journal_pb.ts";
import { sessionOf, type SessionRow, type StoredRecord } from "../journal/index.ts";
import { accessSession, type SessionAccess } from "./access.ts";
import type { CallContext, StreamItem } from "./contract.ts";
import { parseTail, type ParsedTail } from "./read-request.ts";

/** How often a session is read again while another host runs its turn. */
const OTHER_HOST_POLL_MS = 1_000;

/** What Tail needs. */
export interface TailContext extends SessionAccess {
  readonly controller: Controller;
  readonly clock: Clock;
}

/** See `JournalService.tail`. */
export async function* tail(host: TailContext, request: TailRequest, context: CallContext): AsyncGenerator<StreamItem, void, undefined> {
  const asked = parseTail(request);
  const row = await accessSession(host, "session.read", asked.session, "session", context);
  yield { kind: "session", session: sessionOf(row) };
  const ended = new AbortController();
  const signal = AbortSignal.any([context.signal, ended.signal]);
  const until = untilOf(host, asked, row, signal)?.catch((error: unknown) => {
    ended.abort(error);
    return asked.fromSeq;
  });
  try {
    for await (const item of host.controller.watch({ ...asked, until, signal })) {
      yield item;
      if (item.kind === "record" && isDeletion(item.record)) return;
    }
    signal.throwIfAborted();
  } finally {
    ended.abort();
  }
}

/** The last seq to send; undefined while that is for the caller or a deletion to say. */
function untilOf(host: TailContext, asked: ParsedTail, row: SessionRow, signal: AbortSignal): Promise<Seq> | undefined {
  if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) return Promise.resolve(row.keptSeq ?? row.projection.lastSeq);
  switch (asked.until) {
    case "cancelled":
      return undefined;
    case "head":
      return Promise.resolve(row.projection.lastSeq);
    case "idle":
      return idleHead(host, asked.session, signal);
  }
}

/** Resolves with the head once no turn runs; after the tail has ended, with what is then of no use to anybody. */
async function idleHead(host: TailContext, session: SessionUid, signal: AbortSignal): Promise<Seq> {
  for (;;) {
    await host.controller.running(session)?.outcome;
    const row = await host.journal.get(session);
    if (row === undefined) throw new HoldfastError("not_found", "session: no session has this uid", { field: "session" });
    if (signal.aborted) return row.projection.lastSeq;
    if (host.controller.running(session) !== undefined) continue;
    if (row.holder === undefined) return row.projection.lastSeq;
    await host.clock.sleep(OTHER_HOST_POLL_MS, { signal }).catch(() => undefined);
  }
}

function isDeletion(record: StoredRecord): boolean {
  if (record.kind !== EventKind.EVENT_LIFECYCLE) return false;
  const body = decodeLogRecord(record.bytes).event?.body;
  return body?.case === "lifecycle" && body.value.kind === Lifecycle_Kind.LIFECYCLE_DELETE;
}
