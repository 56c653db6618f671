/**
 * Tasks that a host had created and not begun when it stopped. Whoever created one has no answer and may have created another meanwhile, so
 * nobody begins it later: it is deleted, as a task is whose turn could not be begun, and its name is free again.
 *
 * Invariants:
 * - A task that somebody may be about to begin is left alone. Until then it is looked at once more.
 * - A start does not look through all there is: what a host left that way it had created last. What is missed is said to have failed all the same.
 */

import type { SessionUid } from "../../base/ids.ts";
import type { Clock } from "../../base/ports.ts";
import type { Controller } from "../../controller/index.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore, ListCursor, SessionRow } from "../../journal/index.ts";
import { isTask } from "../environment/annotations.ts";
import { BEGINNING_MAX_MS, isUnbegun } from "./task-view.ts";

/** What looking for them needs. */
export interface UnbegunTasksOptions {
  readonly journal: Pick<JournalStore, "get" | "list">;
  readonly controller: Pick<Controller, "delete">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const PAGE_ROWS = 100;
/** How many sessions are looked at, the newest first. */
export const LOOKED_AT_MAX = 10_000;

/** Deletes them; resolves with how many once all are old enough to be told from those that begin just now. Rejects with the store's error. */
export async function dropUnbegunTasks(options: UnbegunTasksOptions): Promise<number> {
  const { journal, clock, signal } = options;
  const young: SessionUid[] = [];
  let dropped = 0;
  for await (const row of emptyTasks(options)) {
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
  if (!isUnbegun(row, clock.nowMs()) || row.projection.deletionState !== DeletionState.DELETION_ACTIVE) return false;
  await controller.delete(row.seed.uid, undefined);
  return true;
}

/** Tasks without a record. */
async function* emptyTasks({ journal, signal }: UnbegunTasksOptions): AsyncGenerator<SessionRow, void, undefined> {
  let after: ListCursor | undefined;
  let lookedAt = 0;
  do {
    const page = await journal.list({ after, limit: PAGE_ROWS, signal });
    signal.throwIfAborted();
    for (const row of page.rows) if (row.projection.lastSeq === 0 && isTask(row.seed)) yield row;
    after = page.next;
    lookedAt += page.rows.length;
  } while (after !== undefined && lookedAt < LOOKED_AT_MAX);
}
