/**
 * A new turn's harness is made ready before the turn's start is written, so that the start tells of the harness that runs it: it may have
 * been replaced since it was asked last what it is.
 *
 * Invariants:
 * - A sandbox is started under a fence that the journal minted for it. Where none lives that the turn can go on in, the lease is taken first,
 *   by an append of its own; the start follows under the same fence.
 * - A harness that cannot be had keeps no turn from being recorded: the turn begins as it was planned, and is interrupted with what went wrong.
 * - Nobody waits for a harness without bounds: after `READY_MAX_MS` the turn begins as it was planned, and can be cancelled.
 */

import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { Fence, HostId } from "../base/ids.ts";
import type { Clock } from "../base/ports.ts";
import type { JournalStore, SessionRow } from "../journal/index.ts";
import type { HarnessDescriptor } from "../spi/index.ts";
import { computeToRestore } from "./compute.ts";
import type { TurnPlan } from "./contract.ts";
import { refuseForeignMemory } from "./plan.ts";
import { keptFence } from "./bring-back.ts";

/** How long a turn's start waits for its harness. */
export const READY_MAX_MS = 5_000;

/** What making ready needs of its controller. */
export interface ReadyContext {
  readonly journal: JournalStore;
  readonly hostId: HostId;
  readonly clock: Clock;
  readonly leaseMs: number;
}

/** A turn whose harness is ready, or cannot be had. */
export interface ReadyTurn {
  /** With what the harness says of itself now. */
  readonly plan: TurnPlan;
  /** The fence that its start keeps; undefined where it mints one. */
  readonly keep: Fence | undefined;
  /** The fence of the lease that was taken for it. */
  readonly claimed: Fence | undefined;
  /** Why the harness cannot be had. */
  readonly unready?: HoldfastError | undefined;
}

/** Makes a turn's harness ready. A session that cannot be taken is left to the append of the start, which tells why. */
export async function readyHarness(context: ReadyContext, row: SessionRow, plan: TurnPlan): Promise<ReadyTurn> {
  const { harness, seed } = plan;
  const { ready } = harness;
  if (ready === undefined) return { plan, keep: undefined, claimed: undefined };
  const kept = keptFence(row, harness);
  const claimed = harness.sandboxed && kept === undefined ? await claim(context, row, plan) : undefined;
  const keep = kept ?? claimed;
  if (harness.sandboxed && keep === undefined) return { plan, keep, claimed };
  const wake = { sessionUid: seed.uid, fence: keep ?? row.fence, identity: seed.identity, compute: computeToRestore(row) };
  try {
    const descriptor = (await inTime(context, (signal) => ready.call(harness, { ...wake, signal }))) ?? plan.descriptor;
    refuseForeignMemory(descriptor, harness, seed);
    return { plan: { ...plan, descriptor }, keep, claimed };
  } catch (error) {
    return { plan, keep, claimed, unready: toHoldfastError(error) };
  }
}

/** The turn did not come to be: what was made ready for it goes, and the session is free. */
export async function leaveUnbegun({ journal }: ReadyContext, { seed, harness }: TurnPlan, fence: Fence): Promise<void> {
  await harness.release(seed.uid).catch(() => undefined);
  await journal.append({ session: seed.uid, writer: { kind: "release", fence }, events: [] }).catch(() => undefined);
}

async function claim({ journal, hostId, leaseMs }: ReadyContext, row: SessionRow, { invocation }: TurnPlan): Promise<Fence | undefined> {
  const expectedLastSeq = invocation.expectedLastSeq ?? row.projection.lastSeq;
  const writer = { kind: "claim", holder: hostId, leaseMs } as const;
  const outcome = await journal.append({ session: row.seed.uid, expectedLastSeq, writer, events: [] });
  return outcome.kind === "appended" ? outcome.fence : undefined;
}

/** Undefined when it takes too long: it is given up, so that the turn that has begun can go about it, and be cancelled meanwhile. */
async function inTime(
  { clock, leaseMs }: ReadyContext,
  ready: (signal: AbortSignal) => Promise<HarnessDescriptor>,
): Promise<HarnessDescriptor | undefined> {
  const late = new AbortController();
  const waited = Promise.withResolvers<undefined>();
  const timer = clock.after(Math.min(READY_MAX_MS, leaseMs / 3), () => {
    // In this order: that it is given up is no reason why it cannot be had.
    waited.resolve(undefined);
    late.abort(new HoldfastError("deadline_exceeded", "harness: it was not ready in time"));
  });
  try {
    const asked = ready(late.signal);
    asked.catch(() => undefined);
    return await Promise.race([asked, waited.promise]);
  } finally {
    timer.cancel();
  }
}
