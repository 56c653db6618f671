/** Ids for tool calls that a model gave none, or one that the conversation has already. */

import type { Random } from "../base/ports.ts";

/** A new id: `call_` and 24 hex digits. */
export function newCallId(random: Random): string {
  return `call_${Buffer.from(random.bytes(12)).toString("hex")}`;
}
