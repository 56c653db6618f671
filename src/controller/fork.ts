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
import { DeletionState, type ComputeRef, type HarnessCatalog, type IdentityRef } from "../spi/index.ts";
import { computeToRestore, keepsMemory } from "./compute.ts";
import { forkEvent } from "./events.ts";
import { deletedError } from "./outcome.ts";
import { rowOf } from "./transitions.ts";

/** A fork as a caller asks for it. */
export interface ForkInvocation {
  readonly parent: SessionUid;
  /** 0 means the head. */
  readonly atSeq: Seq;
  /** Recorded as the actor of a SUSPEND that the fork needs. */
  readonly actor?: IdentityRef | undefined;
  /** The children's seeds, made from the parent's. */
  readonly children: (parent: SessionRow) => readonly SessionSeed[];
}

/** What forking needs of its controller. */
export interface ForkContext {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly clock: Clock;
  /** Suspends a session: see `Controller.suspend`. */
  readonly suspend: (session: SessionUid, actor: IdentityRef | undefined) => Promise<SessionRow>;
}

/** See `Controller.fork`. */
export async function forkSession(context: ForkContext, invocation: ForkInvocation): Promise<readonly SessionRow[]> {
  const { journal, clock } = context;
  const parent = await rowOf(journal, invocation.parent);
  const atSeq = invocation.atSeq === 0 ? parent.projection.lastSeq : invocation.atSeq;
  if (atSeq === 0) throw new HoldfastError("failed_precondition", "session: it has no records yet, so there is nothing to fork");
  if (atSeq > parent.projection.lastSeq) throw pastHead(parent.projection.lastSeq);
  const projection = await projectionAt(journal, parent, atSeq);
  const memory = await forkedMemory(context, parent, { atSeq, actor: invocation.actor });
  if (memory === undefined && projection.openTurn !== undefined) await refuseInsideTurn(context, parent, projection.openTurn);
  const marker = forkEvent(clock, parent.seed.uid, atSeq);
  const children = invocation.children(parent).map((seed) => ({ seed, marker, compute: memory?.compute }));
  const outcome = await journal.fork({
    parent: parent.seed.uid,
    expectedLastSeq: memory?.lastSeq,
    atSeq,
    projection,
    children,
  });
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
      throw movedOn(outcome.lastSeq);
    case "name-taken":
      throw new HoldfastError("already_exists", "child_names: a session of this project has one of these names", { field: "child_names" });
  }
}

/** The memory that children start from, and the head that it belongs to. */
interface ForkedMemory {
  readonly compute: ComputeRef | undefined;
  readonly lastSeq: Seq;
}

/**
 * Children of a session that keeps state in memory are clones of one snapshot, so such a session forks at its head only: it is suspended
 * there, once for all children. Undefined for a session that is its journal and nothing else.
 */
async function forkedMemory(
  context: ForkContext,
  parent: SessionRow,
  at: { readonly atSeq: Seq; readonly actor: IdentityRef | undefined },
): Promise<ForkedMemory | undefined> {
  const entry = context.harnesses.find(parent.seed.harness);
  if (entry === undefined || !entry.runtime.capabilities.memorySnapshot || !keepsMemory(await entry.describe())) return undefined;
  if (parent.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw deletedError();
  if (at.atSeq !== parent.projection.lastSeq) throw notTheHead(parent.projection.lastSeq);
  const suspended = await context.suspend(parent.seed.uid, at.actor);
  if (suspended.projection.openTurn !== undefined) throw openTurnError();
  // What was captured is the memory at `atSeq` only if nothing but the SUSPEND came after it.
  if (suspended.projection.lastSeq > at.atSeq + 1) throw movedOn(suspended.projection.lastSeq);
  const shared = await entry.shared(computeToRestore(suspended));
  if (shared.kind === "missing") {
    // A turn that ended meanwhile has replaced it.
    const { lastSeq } = (await rowOf(context.journal, parent.seed.uid)).projection;
    throw lastSeq === suspended.projection.lastSeq ? memoryGoneError(shared.part) : movedOn(lastSeq);
  }
  return { compute: shared.kind === "whole" ? shared.child : undefined, lastSeq: suspended.projection.lastSeq };
}

function notTheHead(lastSeq: Seq): HoldfastError {
  return new HoldfastError(
    "failed_precondition",
    `at_seq: the session keeps state in memory and forks at its head only; leave it 0, or give ${lastSeq}`,
    { field: "at_seq" },
  );
}

function openTurnError(): HoldfastError {
  return new HoldfastError(
    "failed_precondition",
    "session: it keeps state in memory and has a turn that has not ended; resume or cancel that one, then fork",
  );
}

function memoryGoneError(missing: string): HoldfastError {
  return new HoldfastError(
    "failed_precondition",
    `session: a part of its stored memory is missing (${missing}), so no child could begin with it; put it back where captures are kept`,
  );
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

function movedOn(lastSeq: Seq): HoldfastError {
  return new HoldfastError("aborted", `session: its last_seq is ${lastSeq} now; read the session, then retry`);
}

function pastHead(lastSeq: Seq): HoldfastError {
  return new HoldfastError("failed_precondition", `at_seq: it is past the head; the session's last_seq is ${lastSeq}`, { field: "at_seq" });
}
