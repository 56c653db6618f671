/** The rows of a journal, page by page. */

import type { JournalStore, ListCursor, SessionRow } from "../journal/index.ts";

const PAGE_ROWS = 100;

/** Every session, those included that were deleted and not reclaimed yet, or are being imported. */
export async function* everyRow(
  journal: Pick<JournalStore, "list">,
  signal: AbortSignal | undefined,
): AsyncGenerator<SessionRow, void, undefined> {
  let after: ListCursor | undefined;
  do {
    const page = await journal.list({ includeDeleted: true, after, limit: PAGE_ROWS, signal });
    signal?.throwIfAborted();
    yield* page.rows;
    after = page.next;
  } while (after !== undefined);
}
