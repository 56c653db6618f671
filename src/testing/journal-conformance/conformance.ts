/**
 * What a journal store must do, as a list of named cases for any test runner.
 *
 *     it.each(journalStoreCases(openMyStore))("$name", ({ run }) => run());            // vitest, jest
 *     for (const { name, run } of journalStoreCases(openMyStore)) test(name, run);     // node:test, mocha
 *
 * A case opens a store of its own, fails by rejecting (`node:assert`), and closes what it opened. Cases may run side by side
 * if the factory's stores do not share sessions.
 */

import type { JournalStore } from "../../journal/index.ts";

/** A store under test, and what only its owner can do with it. */
export interface StoreUnderTest extends AsyncDisposable {
  /** The open store; after `reopen` the new one. It is empty at first. */
  readonly store: JournalStore;
  /** Makes the store's clock pass `ms` milliseconds, by moving the clock or by waiting. */
  elapse(ms: number): Promise<void>;
  /** Closes the store and opens it again on what it left. Absent for a store whose sessions end with it. */
  readonly reopen?: (() => Promise<void>) | undefined;
}

/** Opens an empty store. */
export type OpenStoreUnderTest = () => Promise<StoreUnderTest>;

/** One promise of the interface. */
export interface ConformanceCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** The body of a case. */
export type CaseBody = (test: StoreUnderTest) => Promise<void>;

/** The cases of one area, by name. */
export type CaseTable = Readonly<Record<string, CaseBody>>;

/** A table as cases, each with a store of its own. */
export function casesOf(area: string, table: CaseTable, open: OpenStoreUnderTest): ConformanceCase[] {
  return Object.entries(table).map(([name, body]) => ({
    name: `${area}: ${name}`,
    run: async () => {
      await using test = await open();
      await body(test);
    },
  }));
}
