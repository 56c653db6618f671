/**
 * Tasks that a host had created and not begun when it stopped. Whoever created one has no answer and may have created another meanwhile, so
 * nobody begins it later: it is deleted, as a task is whose turn could not be begun, and its name is free again.
 *
 * Invariants:
 * - A task that somebody may be about to begin is left alone, and looked at once more. One that begins just as it is looked at goes on.
 * - A start does not look through all there is (`empty-sessions.ts`). What is missed is said to have failed all the same.
 */

import type { SessionUid } from "../../base/ids.ts";
import type { Clock } from "../../base/ports.ts";
import type { Controller } from "../../controller/index.ts";
import type { JournalStore, SessionRow } from "../../journal/index.ts";
import { isTask } from "../environment/annotations.ts";
import { emptySessions } from "./empty-sessions.ts";
import { BEGINNING_MAX_MS, isUnbegun } from "./task-view.ts";

/** What looking for them needs. */
export interface UnbegunTasksOptions {
  readonly journal: Pick<JournalStore, "get" | "list">;
  readonly controller: Pick<Controller, "deleteUnbegun">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Deletes them; resolves with how many once all are old enough to be told from those that begin just now. Rejects with the store's error. */
export async function dropUnbegunTasks(options: UnbegunTasksOptions): Promise<number> {
  const { journal, clock, signal } = options;
  const young: SessionUid[] = [];
  let dropped = 0;
  for await (const row of emptySessions(journal, { signal })) {
    signal.throwIfAborted();
    if (!isTask(row.seed)) continue;
    if (await dropOne(options, row)) dropped += 1;
    else young.push(row.seed.uid);
  }
  if (young.length === 0) return dropped;
  await clock.sleep(BEGINNING_MAX_MS, { signal });
  for (const uid of young) {
    signal.throwIfAborted();
    const row = await journal.get(uid);
    if (row !== undefined && (await dropOne(options, row))) dropped += 1;
  }
  return dropped;
}

async function dropOne({ controller, clock }: UnbegunTasksOptions, row: SessionRow): Promise<boolean> {
  return isUnbegun(row, clock.nowMs()) && (await controller.deleteUnbegun(row.seed.uid));
}
