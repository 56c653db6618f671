/**
 * Settling: a person says what became of a call whose outcome is not known. Nobody else does.
 *
 * - A call of the open turn that has no result yet gets one, or may be run again when the turn is resumed.
 * - A call whose unknown outcome is on record keeps that record; its receipt says from now on what a call under the same key gets.
 */

import { unreachable } from "../base/assert.ts";
import { HoldfastError } from "../base/errors.ts";
import type { HostId, SessionUid } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import { DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import { isUnsettled, type JournalStore, type NewEvent, type Receipt, type SessionRow } from "../journal/index.ts";
import { Mediation, type IdentityRef } from "../spi/index.ts";
import { toolResultEvent } from "./events.ts";
import { appendedOrThrow, deletedError } from "./outcome.ts";
import { openTurnOf } from "./recover.ts";
import type { RecordedToolCall } from "./recorded-turn.ts";
import type { RunningTurns } from "./running.ts";
import { seqsOf, settledResult } from "./tool-step.ts";
import { RACE_ATTEMPTS_MAX, rowOf } from "./transitions.ts";

/** What a person says of a call. */
export interface Settlement {
  readonly session: SessionUid;
  readonly toolCallId: string;
  /** `done`: it took effect; `failed`: it did not; `retry`: it did not, and may be run again under its key. */
  readonly as: "done" | "failed" | "retry";
  readonly actor: IdentityRef | undefined;
}

/** What settling needs of its controller. */
export interface SettleContext {
  readonly journal: JournalStore;
  readonly running: RunningTurns;
  readonly hostId: HostId;
  readonly clock: Clock;
}

/** See `Controller.settle`. */
export async function settleCall(context: SettleContext, settlement: Settlement): Promise<SessionRow> {
  for (let attempt = 0; attempt < RACE_ATTEMPTS_MAX; attempt++) {
    const row = await rowOf(context.journal, settlement.session);
    if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw deletedError();
    if (context.running.isRunning(row)) {
      throw new HoldfastError("aborted", "session: a turn of it is running; wait for its end or cancel it, then retry");
    }
    const change = (await openChange(context, row, settlement)) ?? (await receiptChange(context, settlement));
    if (await append(context, row, change)) return rowOf(context.journal, settlement.session);
  }
  throw new HoldfastError("aborted", "session: it changed too often meanwhile; read it, then retry");
}

interface Change {
  readonly events: readonly NewEvent[];
  readonly receipt: Receipt;
}

/** What is said of a call of the open turn that has no result; undefined where there is no such call. */
async function openChange(context: SettleContext, row: SessionRow, settlement: Settlement): Promise<Change | undefined> {
  const { journal, clock } = context;
  const turn = await openTurnOf(journal, row);
  const call = turn?.effects.find(
    (effect) => effect.kind === "tool" && effect.call.id === settlement.toolCallId && effect.result === undefined,
  );
  if (turn === undefined || call?.kind !== "tool") return undefined;
  await requireBegun(journal, row, call);
  const { id, idempotencyKey: key } = call.call;
  const receipt: Receipt = { key, callId: id, callSeq: call.seq, state: "intended", settledBy: nameOf(settlement.actor) };
  const { as } = settlement;
  if (as === "retry") return { events: [], receipt };
  const { approval } = call;
  const seqs = approval?.decision === undefined ? undefined : seqsOf(approval.requestSeq, approval.decision.seq);
  const event = toolResultEvent({ executionId: turn.executionId, clock }, settledResult(id, as, seqs), settlement.actor);
  return { events: [event], receipt: { ...receipt, state: as } };
}

/** Throws FAILED_PRECONDITION for a call that certainly has not begun, and for a parent's. */
async function requireBegun(journal: JournalStore, row: SessionRow, { call, seq, approval }: RecordedToolCall): Promise<void> {
  if (seq <= (row.parent?.forkSeq ?? 0)) throw nothingToSettle("the call is the parent's, which a fork may not settle");
  if (call.mediation === Mediation.REQUIRES_APPROVAL && approval?.decision?.value.approved !== true) {
    throw nothingToSettle("the call waits for a decision and has not begun; approve or deny it");
  }
  const [receipt] = await journal.receipts(row.seed.uid, { key: call.idempotencyKey });
  if (receipt?.state === "intended") throw nothingToSettle("the call has not begun; resume the session");
}

/** What is said of a call whose unknown outcome is on record. */
async function receiptChange({ journal }: SettleContext, { session, toolCallId, as, actor }: Settlement): Promise<Change> {
  const receipt = (await journal.receipts(session)).findLast(({ callId, state }) => callId === toolCallId && state === "unknown");
  if (receipt === undefined || !isUnsettled(receipt)) throw nothingToSettle("no call of the session with this id has an unknown outcome");
  const settledBy = nameOf(actor);
  switch (as) {
    case "done":
    case "failed":
      return { events: [], receipt: { ...receipt, state: as, settledBy } };
    case "retry":
      return { events: [], receipt: { ...receipt, state: "intended", settledBy } };
    default:
      return unreachable(as);
  }
}

function nameOf(actor: IdentityRef | undefined): string {
  return actor?.principal ?? "";
}

async function append({ journal, hostId }: SettleContext, row: SessionRow, { events, receipt }: Change): Promise<boolean> {
  const outcome = await journal.append({
    session: row.seed.uid,
    expectedLastSeq: row.projection.lastSeq,
    writer: { kind: "claim", holder: hostId, leaseMs: 0 },
    events,
    receipts: [receipt],
  });
  if (outcome.kind === "conflict" || outcome.kind === "deleted") return false;
  appendedOrThrow(outcome);
  return true;
}

function nothingToSettle(why: string): HoldfastError {
  return new HoldfastError("failed_precondition", `tool_call_id: ${why}`, { field: "tool_call_id" });
}
