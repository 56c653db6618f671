/**
 * Forks: children that share a parent's prefix by reference.
 *
 * Invariant: what a child starts from is what folding its prefix gives, so its projection never depends on how it was made.
 */

import { HoldfastError } from "../base/errors.ts";
import type { Seq, SessionUid } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { projectionAt, type JournalStore, type OpenTurn, type SessionRow, type SessionSeed } from "../journal/index.ts";
import type { HarnessCatalog } from "../spi/index.ts";
import { forkEvent } from "./events.ts";
import { deletedError } from "./outcome.ts";
import { rowOf } from "./transitions.ts";

/** A fork as a caller asks for it. */
export interface ForkInvocation {
  readonly parent: SessionUid;
  /** 0 means the head. */
  readonly atSeq: Seq;
  /** The children's seeds, made from the parent's. */
  readonly children: (parent: SessionRow) => readonly SessionSeed[];
}

/** What forking needs of its controller. */
export interface ForkContext {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly clock: Clock;
}

/** See `Controller.fork`. */
export async function forkSession(context: ForkContext, invocation: ForkInvocation): Promise<readonly SessionRow[]> {
  const { journal, clock } = context;
  const parent = await rowOf(journal, invocation.parent);
  const atSeq = invocation.atSeq === 0 ? parent.projection.lastSeq : invocation.atSeq;
  if (atSeq === 0) throw new HoldfastError("failed_precondition", "session: it has no records yet, so there is nothing to fork");
  if (atSeq > parent.projection.lastSeq) throw pastHead(parent.projection.lastSeq);
  const projection = await projectionAt(journal, parent, atSeq);
  if (projection.openTurn !== undefined) await refuseInsideTurn(context, parent, projection.openTurn);
  const marker = forkEvent(clock, parent.seed.uid, atSeq);
  const children = invocation.children(parent).map((seed) => ({ seed, marker }));
  const outcome = await journal.fork({ parent: parent.seed.uid, atSeq, projection, children });
  switch (outcome.kind) {
    case "forked":
      return outcome.rows;
    case "not-found":
      throw new HoldfastError("not_found", "session: no session has this uid");
    case "deleted":
      throw deletedError();
    case "past-head":
      throw pastHead(outcome.lastSeq);
    case "conflict":
      throw new HoldfastError("aborted", `session: its last_seq is ${outcome.lastSeq} now; read the session, then retry`);
    case "name-taken":
      throw new HoldfastError("already_exists", "child_names: a session of this project has one of these names", { field: "child_names" });
  }
}

/** A harness that is not safe to fork may have acted mid-turn in ways that a replay cannot repeat. */
async function refuseInsideTurn(context: ForkContext, parent: SessionRow, open: OpenTurn): Promise<void> {
  const name = (await recordedHarness(context.journal, parent.seed.uid, open.startSeq)) || parent.seed.harness;
  const descriptor = await context.harnesses.find(name)?.describe();
  if (descriptor?.capabilities?.forkSafe === true) return;
  throw new HoldfastError(
    "failed_precondition",
    "at_seq: it lies inside a turn, and the turn's harness is not safe to fork there; fork at the end of a turn",
    { field: "at_seq" },
  );
}

/** The harness that EXECUTION_START names; "" in a journal without one. */
async function recordedHarness(journal: JournalStore, session: SessionUid, startSeq: Seq): Promise<string> {
  for await (const [record] of journal.read({ session, fromSeq: startSeq, toSeq: startSeq })) {
    const body = record === undefined ? undefined : decodeLogRecord(record.bytes).event?.body;
    if (body?.case === "executionStart") return body.value.harness;
  }
  return "";
}

function pastHead(lastSeq: Seq): HoldfastError {
  return new HoldfastError("failed_precondition", `at_seq: it is past the head; the session's last_seq is ${lastSeq}`, { field: "at_seq" });
}
