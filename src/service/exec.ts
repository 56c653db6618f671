/**
 * Exec: one turn as a stream.
 *
 * Invariants:
 * - Nothing is written before everything in the request was found valid; a session that Exec creates comes after that.
 * - The first item is the Session, and an error of the turn comes after it.
 * - A record is sent only after it is durable, in order, each once (I8).
 * - The stream is the client's; the turn is not. A client that goes away ends its stream and nothing else.
 */

import { HoldfastError } from "../base/errors.ts";
import { SEQ_NONE, type Seq } from "../base/ids.ts";
import type { Controller, ExecInvocation, RunningTurn, TurnPlan } from "../controller/index.ts";
import type { ExecRequest } from "../gen/agentsessions/v1/session_pb.ts";
import { sessionOf, type SessionRow } from "../journal/index.ts";
import type { Authorizer } from "../spi/index.ts";
import { accessSession, authorize } from "./access.ts";
import type { CallContext, StreamItem } from "./contract.ts";
import { createFrom, seedOf, type CreationContext } from "./creation.ts";
import { parseExec, type ParsedExec } from "./exec-request.ts";
import type { ServiceLimits } from "./limits.ts";
import { bareDraft } from "./session-request.ts";

/** What Exec needs. */
export interface ExecContext extends CreationContext {
  readonly controller: Controller;
  readonly authorizer: Authorizer;
  readonly limits: ServiceLimits;
}

/** See `SessionsService.exec`. */
export async function* exec(host: ExecContext, request: ExecRequest, context: CallContext): AsyncGenerator<StreamItem, void, undefined> {
  const parsed = parseExec(request, host.limits);
  const invocation: ExecInvocation = { ...parsed.invocation, caller: context.caller.identity };
  const { row, plan } = await (parsed.session === undefined
    ? planNewSession(host, invocation, context)
    : planSession(host, { session: parsed.session, invocation }, context));
  yield { kind: "session", session: sessionOf(row) };
  context.signal.throwIfAborted();
  const turn = await host.controller.begin(row.seed.uid, plan);
  yield* watchTurn(host, turn, context);
}

interface Planned {
  readonly row: SessionRow;
  readonly plan: TurnPlan;
}

async function planSession(
  host: ExecContext,
  { session, invocation }: { readonly session: NonNullable<ParsedExec["session"]>; readonly invocation: ExecInvocation },
  context: CallContext,
): Promise<Planned> {
  const row = await accessSession(host, "session.exec", session, "session", context);
  return { row, plan: await host.controller.plan(row, invocation) };
}

async function planNewSession(host: ExecContext, invocation: ExecInvocation, context: CallContext): Promise<Planned> {
  const draft = bareDraft(invocation.harness);
  await authorize(host.authorizer, "session.create", { project: draft.project }, context);
  await authorize(host.authorizer, "session.exec", { project: draft.project }, context);
  if ((invocation.expectedLastSeq ?? SEQ_NONE) !== SEQ_NONE) {
    throw new HoldfastError("aborted", "expected_last_seq: a new session has no records; it must be 0 or absent without a session", {
      field: "expected_last_seq",
    });
  }
  const seed = seedOf(host, draft, context, "harness");
  const plan = await host.controller.plan(seed, invocation);
  context.signal.throwIfAborted();
  const row = await createFrom(host, seed, context);
  if (row.seed.uid === seed.uid) return { row, plan };
  return { row, plan: await host.controller.plan(row, invocation) };
}

/** The turn's records and deltas; a turn that parked ends with the Session as it is then, one that was interrupted with the reason. */
async function* watchTurn(host: ExecContext, turn: RunningTurn, context: CallContext): AsyncGenerator<StreamItem, void, undefined> {
  const { session, startSeq, executionId } = turn;
  const { signal } = context;
  yield* host.controller.watch({ session, fromSeq: startSeq, until: turn.outcome.then((outcome) => outcome.lastSeq), signal });
  signal.throwIfAborted();
  const outcome = await turn.outcome;
  switch (outcome.kind) {
    case "ended":
      return;
    case "interrupted": {
      // Another host may have ended the turn: its END is committed, and then the stream is as good as any.
      const row = await host.journal.get(session);
      if (row === undefined || row.projection.openTurn?.executionId === executionId || outcome.error.code !== "aborted")
        throw outcome.error;
      yield* host.controller.watch({
        session,
        fromSeq: (outcome.lastSeq + 1) as Seq,
        until: Promise.resolve(row.projection.lastSeq),
        deltas: false,
        signal,
      });
      return;
    }
    case "parked": {
      const row = await host.journal.get(turn.session);
      if (row !== undefined) yield { kind: "session", session: sessionOf(row) };
    }
  }
}
