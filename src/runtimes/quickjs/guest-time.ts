/**
 * The time and the randomness that a guest sees: its turn's, so that the same execution sees the same again.
 *
 * - Time is when the execution began. An execution id of this host is a UUID of version 7, which tells it; any other id leaves the host's
 *   clock. It stands still while the guest computes and moves to a timer's due time when that fires.
 * - Randomness begins anew with every execution, from the session and the execution: forks of one memory part at their next turn.
 */

import type { Digest } from "../../base/index.ts";

const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** When an execution began, in milliseconds since the epoch, where its id tells it. */
export function startOfExecution(executionId: string): number | undefined {
  const parts = UUID_V7.exec(executionId);
  return parts === null ? undefined : Number.parseInt(parts[1]! + parts[2]!, 16);
}

/** Four 32-bit words for `what` happens in a session. */
export function seedOf(session: string, what: string, digest: Digest): number[] {
  const hex = digest.sha256Hex(JSON.stringify([session, what]));
  return [0, 8, 16, 24].map((at) => Number.parseInt(hex.slice(at, at + 8), 16));
}
