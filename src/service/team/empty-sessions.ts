/** Sessions that were created and have no record: what a host leaves that stops in between, among others. */

import type { JournalStore, ListCursor, SessionRow } from "../../journal/index.ts";

const PAGE_ROWS = 100;
/** How many sessions are looked at, the newest first: what a host left that way it had created last. */
export const LOOKED_AT_MAX = 10_000;

/** Those without a record among the newest, the newest first; ends where the signal fires. */
export async function* emptySessions(
  journal: Pick<JournalStore, "list">,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<SessionRow, void, undefined> {
  let after: ListCursor | undefined;
  let lookedAt = 0;
  do {
    if (signal.aborted) return;
    const page = await journal.list({ after, limit: PAGE_ROWS });
    for (const row of page.rows) if (row.projection.lastSeq === 0) yield row;
    after = page.next;
    lookedAt += page.rows.length;
  } while (after !== undefined && lookedAt < LOOKED_AT_MAX);
}
