/** Running a turn and following it on the screen, with what Ctrl-C means meanwhile. */

import { HoldfastError } from "../base/errors.ts";
import { ExecState, type Client, type ExecStream, type ExecTurn, type StreamItem, type TurnEnd } from "../client/index.ts";
import { isConnectionFault } from "../client/reconnect.ts";
import type { ExecFlags } from "./commands/exec.ts";
import type { Connection } from "./connect.ts";
import { givenCreationFlags, sessionInit } from "./creation.ts";
import type { ExitCode } from "./exit.ts";
import { itemJson } from "./json.ts";
import { HintedError, type CommandContext } from "./perform.ts";
import { plainLine } from "./plain.ts";
import { TurnPrinter } from "./turn-printer.ts";

/** Runs the turn to its end, or until the person at the terminal has enough. */
export async function followTurn(context: CommandContext, connection: Connection, turn: ExecTurn, flags: ExecFlags): Promise<ExitCode> {
  const { stop, signal } = context;
  const session = turn.session ?? (await createdSession(context, connection, flags));
  const stream = connection.client.sessions.exec({ ...turn, session }, { signal });
  if (flags.cancelOnInterrupt === true) stop.onInterrupt(() => cancel(context, connection, stream));
  try {
    await show(context, stream, flags.deltas === true);
  } catch (error) {
    if (stop.leaving) sayDetached(context, connection, stream);
    throw stop.leaving ? error : await withPickUp(error, connection, stream);
  }
  if (stop.interrupted) return 130;
  const { end } = stream;
  if (end?.kind === "parked") sayParked(context, connection, end.approval.toolCallId, stream.sessionUid ?? "");
  return end === undefined ? 1 : exitOfEnd(end);
}

/** What a turn waits for, and how that is answered. */
export function sayParked({ screen }: CommandContext, { serverFlag }: Connection, toolCallId: string, uid: string): void {
  screen.hint(`the turn waits for the approval of ${plainLine(toolCallId)}`);
  screen.hint(`decide with: holdfast approve ${uid}${serverFlag} (or deny)`);
}

/** Flags that only a session can have mean that it is created before the turn. */
async function createdSession({ signal }: CommandContext, { client }: Connection, flags: ExecFlags): Promise<string | undefined> {
  if (givenCreationFlags(flags).length === 0) return undefined;
  const session = await client.sessions.create({ ...sessionInit(flags), harness: flags.harness }, { signal });
  return session.metadata?.uid;
}

async function show({ screen }: CommandContext, stream: ExecStream, jsonDeltas: boolean): Promise<void> {
  const printer = new TurnPrinter((text) => screen.write(text), { live: screen.live });
  let named = false;
  const showItem = (item: StreamItem): void => {
    if (screen.json) {
      if (item.kind !== "delta" || jsonDeltas) screen.value(itemJson(item));
      return;
    }
    if (item.kind === "session" && !named) screen.line(screen.bold(`session ${item.session.metadata?.uid ?? ""}`));
    named ||= item.kind === "session";
    printer.print(item);
  };
  try {
    for await (const item of stream) showItem(item);
  } finally {
    printer.close();
  }
}

function cancel({ screen, stop }: CommandContext, { client }: Connection, stream: ExecStream): void {
  const { sessionUid, executionId } = stream;
  if (sessionUid === undefined) return;
  screen.note("cancelling the turn; Ctrl-C again exits at once");
  client.sessions.cancel(sessionUid, { executionId }).catch((error: unknown) => {
    if (!stop.signal.aborted)
      screen.error(error instanceof HoldfastError ? error : new HoldfastError("internal", "the cancel failed", { cause: error }));
  });
}

function sayDetached({ screen }: CommandContext, { embedded, serverFlag }: Connection, stream: ExecStream): void {
  const { sessionUid, lastSeq } = stream;
  if (sessionUid === undefined) return;
  if (embedded)
    screen.pickUp(`the turn is interrupted, since its server was in this process; let it go on with: holdfast resume ${sessionUid}`);
  else screen.pickUp(`detached; the turn goes on. pick it up with: holdfast tail ${sessionUid} --from ${lastSeq + 1n}${serverFlag}`);
}

/** How long the session is asked for after an error. */
const LOOK_TIMEOUT_MS = 5_000;

/** The error with what is left to do about its turn, if that was begun: it may go on, or it has stopped. */
async function withPickUp(error: unknown, { client, embedded, serverFlag }: Connection, stream: ExecStream): Promise<unknown> {
  const { sessionUid, lastSeq, executionId } = stream;
  if (!(error instanceof HoldfastError) || sessionUid === undefined || executionId === undefined) return error;
  const tail = `the turn may go on without its client: holdfast tail ${sessionUid} --from ${lastSeq + 1n}${serverFlag}`;
  if (isConnectionFault(error)) return embedded ? error : new HintedError(error, tail);
  switch (await standOf(client, sessionUid)) {
    case "running":
      return embedded ? error : new HintedError(error, tail);
    case "stopped":
      return new HintedError(error, `let it go on with: holdfast resume ${sessionUid}${serverFlag}`);
    case "other":
      return error;
  }
}

/** Where the session's turn stands: `other` for one that has ended or waits for a person, and where nobody can say. */
async function standOf(client: Client, uid: string): Promise<"running" | "stopped" | "other"> {
  try {
    const { execState, pendingApproval } = await client.sessions.get(uid, { timeoutMs: LOOK_TIMEOUT_MS });
    if (execState === ExecState.EXEC_RUNNING) return "running";
    const hasStopped = execState === ExecState.EXEC_FAILED || execState === ExecState.EXEC_AWAITING;
    return hasStopped && pendingApproval === undefined ? "stopped" : "other";
  } catch {
    // The error that was met first is the one to tell.
    return "other";
  }
}

function exitOfEnd(end: TurnEnd): ExitCode {
  if (end.kind === "parked") return 7;
  return end.state === "COMPLETED" ? 0 : 1;
}
