/** The echo harness as a module for a sandbox. */

import { createEchoHarness } from "../../../src/harnesses/echo.ts";

export default createEchoHarness;
