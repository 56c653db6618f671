/** Suspend, Resume and Fork: the transitions of a session and its children. */

import { create } from "@bufbuild/protobuf";
import { newSessionUid, sessionUidOf } from "../base/ids.ts";
import { untilAborted } from "../base/until-aborted.ts";
import {
  ForkResponseSchema,
  type ForkRequest,
  type ForkResponse,
  type ResumeRequest,
  type Session,
  type SuspendRequest,
} from "../gen/agentsessions/v1/session_pb.ts";
import { sessionOf, type SessionRow, type SessionSeed } from "../journal/index.ts";
import { accessSession } from "./access.ts";
import type { CallContext } from "./contract.ts";
import type { ExecContext } from "./exec.ts";
import { parseFork, type ParsedFork } from "./fork-request.ts";

/** See `SessionsService.suspend`. */
export async function suspend(host: ExecContext, request: SuspendRequest, context: CallContext): Promise<Session> {
  const session = sessionUidOf(request.session, "session");
  await accessSession(host, "session.suspend", session, "session", context);
  return sessionOf(await host.controller.suspend(session, context.caller.identity));
}

/** See `SessionsService.resume`. */
export async function resume(host: ExecContext, request: ResumeRequest, context: CallContext): Promise<Session> {
  const session = sessionUidOf(request.session, "session");
  await accessSession(host, "session.resume", session, "session", context);
  const { row, turn } = await host.controller.resume(session, context.caller.identity);
  if (turn === undefined) return sessionOf(row);
  // A caller that goes away waits no longer; the turn goes on.
  const outcome = await untilAborted(turn.outcome, context.signal);
  if (outcome.kind === "interrupted") throw outcome.error;
  return sessionOf((await host.journal.get(session)) ?? row);
}

/** See `SessionsService.fork`. */
export async function fork(host: ExecContext, request: ForkRequest, context: CallContext): Promise<ForkResponse> {
  const parsed = parseFork(request, host.limits);
  await accessSession(host, "session.fork", parsed.parent, "session", context);
  const rows = await host.controller.fork({
    parent: parsed.parent,
    atSeq: parsed.atSeq,
    children: (parent) => parsed.names.map((name) => childSeed(host, parent, { ...parsed, name }, context)),
  });
  return create(ForkResponseSchema, { children: rows.map(sessionOf) });
}

/** A child is its parent's in project, harness, model, annotations and origin; its name, labels and principal are not. */
function childSeed(
  host: ExecContext,
  parent: SessionRow,
  child: ParsedFork & { readonly name: string },
  context: CallContext,
): SessionSeed {
  const { project, harness, model, annotations, origin } = parent.seed;
  return {
    uid: newSessionUid(host.ports),
    project,
    name: child.name,
    harness,
    model,
    identity: context.caller.identity,
    origin,
    labels: child.labels,
    annotations,
    createTimeMs: host.ports.clock.nowMs(),
  };
}
