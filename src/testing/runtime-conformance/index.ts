/** The conformance suite of the Runtime interface: what a runtime of your own is tested with. */

import { casesOf, type OpenRuntimeUnderTest, type RuntimeCase } from "./conformance.ts";
import { FORK_CASES } from "./fork-cases.ts";
import { LIFE_CASES } from "./life-cases.ts";
import { SNAPSHOT_CASES } from "./snapshot-cases.ts";

export type { OpenRuntimeUnderTest, RuntimeCase, RuntimeUnderTest } from "./conformance.ts";

/** Every case, for runtimes that `open` opens. See the head of `conformance.ts` for how to run them. */
export function runtimeCases(open: OpenRuntimeUnderTest): readonly RuntimeCase[] {
  return [...casesOf("life", LIFE_CASES, open), ...casesOf("snapshot", SNAPSHOT_CASES, open), ...casesOf("fork", FORK_CASES, open)];
}
