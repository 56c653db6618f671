/** What a host does with the turns that an earlier one left open. */

import { toHoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { Log } from "../base/ports.ts";
import { ComputeState } from "../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore, ListCursor, SessionRow } from "../journal/index.ts";
import type { Controller } from "./contract.ts";

/** How interrupted turns are found and taken up. */
export interface StartupOptions {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Turns that are taken up at once. One that waits for somebody who is not there does not count. */
  readonly concurrencyMax: number;
  /** Resolves when a turn of the session waits for its client, who is not there, and when the signal fires in any case. */
  readonly untilClientIsMissed?: ((session: SessionUid, signal: AbortSignal) => Promise<void>) | undefined;
}

/** What came of the turns that were found open. */
export interface StartupReport {
  /** They went on, to whatever end. */
  readonly resumed: number;
  /** They may not go on here; the log says why, and Resume says it to whoever asks. */
  readonly refused: number;
  /** They wait for somebody: a decision, a person who looks at their error, or the client whose tools they need. */
  readonly left: number;
}

const PAGE_ROWS = 100;

/**
 * Resumes every interrupted turn that nobody runs, and resolves when all of them have stopped or wait for their client. A turn whose last word is an ERROR is
 * left alone: what failed once would fail at every start. So is one that waits for a decision.
 */
export async function resumeInterrupted(options: StartupOptions): Promise<StartupReport> {
  const report = { resumed: 0, refused: 0, left: 0 };
  const working = new Set<Promise<void>>();
  for await (const row of openTurns(options)) {
    if (waits(row)) {
      report.left += 1;
      continue;
    }
    const work = resumeOne(options, row).then((went) => void (report[went] += 1));
    working.add(work);
    void work.finally(() => working.delete(work));
    if (working.size >= options.concurrencyMax) await Promise.race(working);
  }
  await Promise.all(working);
  return report;
}

/** A parked turn is cold and waits for a Resume, decided or not; one that is not cold was going on, or was about to park. */
function waits({ projection }: SessionRow): boolean {
  const { openTurn: turn, computeState } = projection;
  return turn === undefined || turn.failed || (turn.approvals.length > 0 && computeState === ComputeState.COMPUTE_COLD);
}

async function resumeOne({ controller, log, untilClientIsMissed }: StartupOptions, row: SessionRow): Promise<keyof StartupReport> {
  try {
    const { turn } = await controller.resume(row.seed.uid, undefined);
    if (turn === undefined) return "resumed";
    const stopped = new AbortController();
    const went = turn.outcome.then(() => "resumed" as const).finally(() => stopped.abort());
    const missed = untilClientIsMissed?.(row.seed.uid, stopped.signal).then(() => "left" as const);
    return await (missed === undefined ? went : Promise.race([went, missed]));
  } catch (error) {
    log.log("warn", "an interrupted turn was not resumed", { session: row.seed.uid, code: toHoldfastError(error).code });
    return "refused";
  }
}

/** Sessions with a turn that nobody runs. Pages are read ahead of the work, so resumed sessions do not shift them. */
async function* openTurns({ journal, signal }: StartupOptions): AsyncGenerator<SessionRow, void, undefined> {
  let after: ListCursor | undefined;
  do {
    const page = await journal.list({ openTurn: true, after, limit: PAGE_ROWS });
    for (const row of page.rows) {
      if (signal.aborted) return;
      if (row.holder === undefined) yield row;
    }
    after = page.next;
  } while (after !== undefined);
}
