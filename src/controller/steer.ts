/** Giving a message to a running turn, and waiting until it is on record. */

import { HoldfastError } from "../base/errors.ts";
import type { ExecutionId, Seq } from "../base/ids.ts";
import { decodeLogRecord } from "../canon/index.ts";
import type { Controller } from "./contract.ts";
import { handsOut, type SteeringMessage } from "./inbox.ts";
import type { Turn } from "./turn.ts";

/** Resolves with the record that has the message. Rejects where the turn ends before; nobody gets the message then. */
export async function steerTurn(
  turn: Turn,
  message: SteeringMessage,
  watch: Controller["watch"],
  signal: AbortSignal | undefined,
): Promise<{ executionId: ExecutionId; seq: Seq }> {
  const fromSeq = (turn.durableSeq + 1) as Seq;
  turn.inbox.put(message);
  try {
    const until = turn.outcome.then(({ lastSeq }) => lastSeq);
    for await (const item of watch({ session: turn.session, fromSeq, deltas: false, until, signal })) {
      if (item.kind !== "record") continue;
      const { event } = decodeLogRecord(item.record.bytes);
      if (event !== undefined && handsOut(event, message.id)) return { executionId: turn.executionId, seq: item.record.seq };
    }
  } finally {
    turn.inbox.withdraw(message.id);
  }
  throw new HoldfastError(
    "failed_precondition",
    "session: its turn ended before it asked for messages; give the message to a turn as its input",
  );
}

/** What a message gets that no turn can take. */
export function noTurnError(): HoldfastError {
  return new HoldfastError("failed_precondition", "session: no turn of it runs on this host; give the message to a turn as its input");
}
