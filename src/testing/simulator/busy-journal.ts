/** A store that knows whether it is at work, so that simulated time can wait for one that works in real time. */

import type { JournalStore, ReadRequest, StoredRecord } from "../../journal/index.ts";

/** A store and how many calls of it are not answered yet. */
export interface BusyJournal {
  readonly journal: JournalStore;
  readonly isBusy: () => boolean;
}

/** Counts the calls of `journal` that are under way. */
export function busyJournal(journal: JournalStore): BusyJournal {
  let underWay = 0;
  const counted = async <T>(call: Promise<T>): Promise<T> => {
    underWay += 1;
    try {
      return await call;
    } finally {
      underWay -= 1;
    }
  };
  async function* pages(request: ReadRequest): AsyncGenerator<readonly StoredRecord[], void, void> {
    const inner = journal.read(request)[Symbol.asyncIterator]();
    try {
      for (let next = await counted(inner.next()); next.done !== true; next = await counted(inner.next())) yield next.value;
    } finally {
      await inner.return?.();
    }
  }
  return {
    isBusy: () => underWay > 0,
    journal: {
      name: journal.name,
      append: (request, options) => counted(journal.append(request, options)),
      create: (seed, options) => counted(journal.create(seed, options)),
      fork: (request, options) => counted(journal.fork(request, options)),
      reclaim: (session, options) => counted(journal.reclaim(session, options)),
      adopt: (request, options) => counted(journal.adopt(request, options)),
      complete: (sessions, options) => counted(journal.complete(sessions, options)),
      renew: (request) => counted(journal.renew(request)),
      get: (session, options) => counted(journal.get(session, options)),
      list: (request) => counted(journal.list(request)),
      readAsides: (request) => counted(journal.readAsides(request)),
      receipts: (session, query) => counted(journal.receipts(session, query)),
      read: pages,
      watch: (session, listener) => journal.watch(session, listener),
      ready: (options) => counted(journal.ready(options)),
      [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
    },
  };
}
