/** The chat harness as a module for a sandbox. */

import { createChatHarness } from "../../../src/harnesses/chat.ts";

export default createChatHarness;
