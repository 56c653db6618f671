/** A client that runs the turns of sessions to their ends, however often its server is killed meanwhile. */

import { HoldfastError } from "../../../src/base/index.ts";
import { ExecState, type Client, type Session } from "../../../src/client/index.ts";
import type { Doorway } from "./host-process.ts";
import type { TurnPlan } from "./plan.ts";

/** How the turns of a run came to their ends. */
export interface TurnCounts {
  resumes: number;
  approvals: number;
}

/** Creates a session. */
export function createSession(door: Doorway): Promise<string> {
  return insisting(door, async (client) => (await client.sessions.create()).metadata?.uid ?? "");
}

/** Runs one turn of a session until it has ended; rejects where it ended otherwise than COMPLETED. */
export async function runTurn(door: Doorway, session: string, plan: TurnPlan, counts: TurnCounts): Promise<void> {
  const before = await insisting(door, (client) => client.sessions.get(session));
  for (;;) {
    const now = await insisting(door, (client) => step(client, session, { before, plan, counts }));
    if (now.lastSeq === before.lastSeq || now.pendingApproval !== undefined) continue;
    if (now.execState === ExecState.EXEC_COMPLETED) return;
    if (now.execState !== ExecState.EXEC_AWAITING && now.execState !== ExecState.EXEC_RUNNING) {
      throw new Error(`${plan.turn}: the turn ended in exec_state ${now.execState}`);
    }
  }
}

interface Turn {
  readonly before: Session;
  readonly plan: TurnPlan;
  readonly counts: TurnCounts;
}

/** Takes a turn one step further, from wherever it is; the session as it is then. */
async function step(client: Client, session: string, { before, plan, counts }: Turn): Promise<Session> {
  const now = await client.sessions.get(session);
  if (now.lastSeq === before.lastSeq) {
    await client.sessions.exec({ session, inputs: JSON.stringify(plan), expectedLastSeq: before.lastSeq }, { reconnect: false }).finish();
  } else if (now.execState === ExecState.EXEC_RUNNING) {
    for await (const item of client.session(session).tail({ fromSeq: now.lastSeq, until: "idle", reconnect: false })) void item;
  } else if (now.execState === ExecState.EXEC_AWAITING) {
    if (now.pendingApproval !== undefined) {
      await client.sessions.approve(session, now.pendingApproval, { approved: true });
      counts.approvals += 1;
    }
    await client.sessions.resume(session);
    counts.resumes += 1;
  }
  return await client.sessions.get(session);
}

/** Does it, and does it again with the next server where this one went away, and at once where somebody else was faster. */
async function insisting<Value>(door: Doorway, act: (client: Client) => Promise<Value>): Promise<Value> {
  let gone: Client | undefined;
  for (;;) {
    const client = await door.client(gone);
    try {
      return await act(client);
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (error.code === "unavailable") gone = client;
      else if (error.code !== "aborted") throw error;
    }
  }
}
