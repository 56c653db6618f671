/**
 * What a runtime must do, as a list of named cases for any test runner.
 *
 *     it.each(runtimeCases(openMyRuntime))("$name", ({ run }) => run());            // vitest, jest
 *     for (const { name, run } of runtimeCases(openMyRuntime)) test(name, run);     // node:test, mocha
 *
 * The harness in it is a counter: each turn it adds one to a count in its memory and outputs the count. `createCounterHarness` of
 * `src/harnesses` is one. A case opens a runtime of its own, fails by rejecting (`node:assert`), and closes what it opened. What only a
 * runtime with memory snapshots can do is asked of those that say that they have them.
 */

import type { Runtime } from "../../spi/index.ts";

/** A runtime under test, and what only its owner can do with it. */
export interface RuntimeUnderTest extends AsyncDisposable {
  /** The open runtime; after `reopen` the new one. */
  readonly runtime: Runtime;
  /** Whether every incarnation is a sandbox of its own, which can be ended. False for a harness that all sessions share. */
  readonly sandboxed: boolean;
  /** Closes the runtime and opens it again on what it stored, as another process would. Absent where nothing is stored. */
  readonly reopen?: (() => Promise<void>) | undefined;
}

/** Opens a runtime that nothing lives in. */
export type OpenRuntimeUnderTest = () => Promise<RuntimeUnderTest>;

/** One promise of the interface. */
export interface RuntimeCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** The body of a case. */
export type RuntimeCaseBody = (test: RuntimeUnderTest) => Promise<void>;

/** The cases of one area, by name. */
export type RuntimeCaseTable = Readonly<Record<string, RuntimeCaseBody>>;

/** A table as cases, each with a runtime of its own. */
export function casesOf(area: string, table: RuntimeCaseTable, open: OpenRuntimeUnderTest): RuntimeCase[] {
  return Object.entries(table).map(([name, body]) => ({
    name: `${area}: ${name}`,
    run: async () => {
      await using test = await open();
      await body(test);
    },
  }));
}
