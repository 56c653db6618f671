/** Resuming a session and following its turn on the screen, as `follow-turn.ts` follows a new one. */

import { invalidArgument } from "../base/errors.ts";
import { ExecState, type Session, type StreamItem } from "../client/index.ts";
import { systemClock } from "../node/index.ts";
import type { Connection } from "./connect.ts";
import type { ExitCode } from "./exit.ts";
import { itemJson, sessionJson } from "./json.ts";
import { sayParked } from "./follow-turn.ts";
import type { CommandContext } from "./perform.ts";
import { stateOf } from "./session-text.ts";
import { TurnPrinter } from "./turn-printer.ts";

/** How often a session is looked at until its turn runs again. */
const LOOK_MS = 50;

/** How Resume was answered. */
type Answer = { readonly kind: "resumed"; readonly session: Session } | { readonly kind: "failed"; readonly error: unknown };

/** Resumes and prints what follows, until the turn has ended or the person at the terminal has enough. */
export async function followResume(context: CommandContext, connection: Connection, uid: string): Promise<ExitCode> {
  const { screen, stop, signal } = context;
  const before = await connection.client.sessions.get(uid, { signal });
  const answer = answerOf(connection.client.sessions.resume(uid, { signal }));
  let lastSeq = before.lastSeq;
  try {
    const end = await show(context, connection, before, answer, (seq) => (lastSeq = seq));
    const answered = await answer;
    if (answered.kind === "failed") throw answered.error;
    const { session } = answered;
    if (session.lastSeq === before.lastSeq && !screen.json) screen.hint("there was nothing to resume");
    if (session.pendingApproval === undefined) return end === undefined || end === "COMPLETED" ? 0 : 1;
    sayParked(context, connection, session.pendingApproval.toolCallId, uid);
    return 7;
  } catch (error) {
    if (stop.leaving) sayDetached(context, connection, uid, lastSeq);
    throw error;
  }
}

/** Resumes and leaves once the turn runs, or once there turned out to be nothing to wait for. */
export async function detachResume(context: CommandContext, connection: Connection, uid: string): Promise<ExitCode> {
  const { screen, signal } = context;
  if (connection.embedded) throw invalidArgument("--detach", "needs a server that outlives the command; the embedded one ends with it");
  const { sessions } = connection.client;
  const answer = answerOf(sessions.resume(uid, { signal }));
  let session = await sessions.get(uid, { signal });
  for (let settled: Answer | undefined; session.execState !== ExecState.EXEC_RUNNING && settled === undefined;) {
    settled = await Promise.race([answer, systemClock.sleep(LOOK_MS, { signal }).then(() => undefined)]);
    if (settled?.kind === "failed") throw settled.error;
    session = settled?.session ?? (await sessions.get(uid, { signal }));
  }
  if (screen.json) screen.value({ session: sessionJson(session) });
  else screen.line(`session ${uid}  ${stateOf(session)}  last seq ${session.lastSeq}`);
  if (session.execState === ExecState.EXEC_RUNNING) sayDetached(context, connection, uid, session.lastSeq);
  return 0;
}

async function answerOf(resuming: Promise<Session>): Promise<Answer> {
  try {
    return { kind: "resumed", session: await resuming };
  } catch (error) {
    return { kind: "failed", error };
  }
}

/** Prints records from the old head on, until all are there that the answer stands for. Returns how the turn ended, if it did. */
async function show(
  { screen, signal }: CommandContext,
  { client }: Connection,
  before: Session,
  answer: Promise<Answer>,
  onRecord: (seq: bigint) => void,
): Promise<string | undefined> {
  const uid = before.metadata?.uid ?? "";
  const enough = new AbortController();
  const printer = new TurnPrinter((text) => screen.write(text), { live: screen.live, lastSeq: before.lastSeq });
  const seen = { lastSeq: before.lastSeq, end: undefined as string | undefined, until: undefined as bigint | undefined };
  const settled = answer.then(async (answered) => {
    const session = answered.kind === "resumed" ? answered.session : await client.sessions.get(uid, { signal });
    seen.until = session.lastSeq;
    if (seen.lastSeq >= seen.until) enough.abort();
  });
  // Where the tail fails first, its error is the one that counts.
  settled.catch(() => undefined);
  const isOver = (): boolean => seen.end !== undefined || (seen.until !== undefined && seen.lastSeq >= seen.until);
  if (screen.json) screen.value(itemJson({ kind: "session", session: before }));
  else screen.line(screen.bold(`session ${uid}`));
  try {
    const items = client.journal.tail(uid, { fromSeq: before.lastSeq + 1n, signal: AbortSignal.any([signal, enough.signal]) });
    for await (const item of items) {
      if (item.kind === "record") {
        onRecord((seen.lastSeq = item.record.seq));
        seen.end = endOf(item) ?? seen.end;
      }
      if (!screen.json) printer.print(item);
      else if (item.kind === "record") screen.value(itemJson(item));
      if (isOver()) break;
    }
  } catch (error) {
    if (!enough.signal.aborted || signal.aborted) throw error;
  } finally {
    printer.close();
  }
  await settled;
  return seen.end;
}

function endOf(item: StreamItem): string | undefined {
  const body = item.kind === "record" ? item.record.event?.body : undefined;
  return body?.case === "end" ? body.value.state : undefined;
}

function sayDetached({ screen }: CommandContext, { embedded, serverFlag }: Connection, uid: string, lastSeq: bigint): void {
  if (embedded) screen.pickUp(`the turn is interrupted, since its server was in this process; let it go on with: holdfast resume ${uid}`);
  else screen.pickUp(`detached; the turn goes on. pick it up with: holdfast tail ${uid} --from ${lastSeq + 1n}${serverFlag}`);
}
