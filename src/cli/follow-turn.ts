/** Running a turn and following it on the screen, with what Ctrl-C means meanwhile. */

import type { ExecStream, ExecTurn, StreamItem, TurnEnd } from "../client/index.ts";
import { HoldfastError } from "../base/errors.ts";
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
  const { screen, stop, signal } = context;
  const session = turn.session ?? (await createdSession(context, connection, flags));
  const stream = connection.client.sessions.exec({ ...turn, session }, { signal });
  if (flags.cancelOnInterrupt === true) stop.onInterrupt(() => cancel(context, connection, stream));
  try {
    await show(context, stream, flags.deltas === true);
  } catch (error) {
    if (stop.leaving) sayDetached(context, connection, stream);
    throw withPickUp(error, connection, stream);
  }
  if (stop.interrupted) return 130;
  const { end } = stream;
  if (end?.kind === "parked" && !screen.json) screen.hint(`the turn waits for the approval of ${plainLine(end.approval.toolCallId)}`);
  return end === undefined ? 1 : exitOfEnd(end);
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

function withPickUp(error: unknown, { embedded, serverFlag }: Connection, stream: ExecStream): unknown {
  const { sessionUid, lastSeq, executionId } = stream;
  if (!(error instanceof HoldfastError) || error.code !== "unavailable" || embedded) return error;
  if (sessionUid === undefined || executionId === undefined) return error;
  return new HintedError(error, `the turn may go on without its client: holdfast tail ${sessionUid} --from ${lastSeq + 1n}${serverFlag}`);
}

function exitOfEnd(end: TurnEnd): ExitCode {
  if (end.kind === "parked") return 7;
  return end.state === "COMPLETED" ? 0 : 1;
}
