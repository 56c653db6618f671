/** Bringing a session's sandbox back, and the fence under which it then writes. */

import type { Fence } from "../base/ids.ts";
import { ComputeState } from "../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore, SessionRow } from "../journal/index.ts";
import type { ComputeRef, HarnessEntry } from "../spi/index.ts";
import { computeToRestore } from "./compute.ts";
import { appendedOrThrow } from "./outcome.ts";

/** The fence that the session's incarnation here was minted, while it is the newest: a superseded one is not kept. */
export function keptFence(row: SessionRow, entry: HarnessEntry): Fence | undefined {
  const fence = entry.fenceOf(row.seed.uid);
  return fence === row.fence ? fence : undefined;
}

/**
 * Wakes a session under a lease, which ends at once where that fails. ABORTED where somebody has taken the session meanwhile: what was to be
 * restored may be replaced and gone then, and that says nothing of the session's memory.
 */
export async function wakeOrRelease(
  journal: JournalStore,
  row: SessionRow,
  entry: HarnessEntry,
  fence: Fence,
): Promise<ComputeRef | undefined> {
  const session = row.seed.uid;
  try {
    return await entry.wake({ sessionUid: session, fence, identity: row.seed.identity, compute: computeToRestore(row) });
  } catch (error) {
    appendedOrThrow(await journal.append({ session, writer: { kind: "release", fence }, events: [] }));
    throw error;
  }
}

/** Whether the session is suspended. */
export function isCold(row: SessionRow): boolean {
  return row.projection.computeState === ComputeState.COMPUTE_COLD;
}
