/** The counter harness as a module for a sandbox. */

import { createCounterHarness } from "../../../src/harnesses/counter.ts";

export default createCounterHarness;
