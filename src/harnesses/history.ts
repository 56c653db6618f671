/**
 * The history harness: it takes its inputs and does nothing. A turn of it brings a conversation from elsewhere into a session, whose own
 * harness reads it there like everything that was said before.
 */

import { describeHarness, type Harness } from "../spi/index.ts";

/** The history harness; it takes no config. */
export function createHistoryHarness(): Harness {
  const descriptor = describeHarness({ id: "history", version: "1" });
  return { describe: async () => descriptor, run: async () => undefined };
}
