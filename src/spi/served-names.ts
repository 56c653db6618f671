/** What a caller is told who named a harness that nobody serves. */

import type { HarnessCatalog } from "./catalog.ts";

/** Names in one message. */
const NAMES_MAX = 20;

/** The names that new sessions may use, in a sentence's form; at most 20 of them. */
export function servedNames(harnesses: HarnessCatalog): string {
  const names = harnesses.names();
  if (names.length === 0) return "none";
  const more = names.length - NAMES_MAX;
  return more > 0 ? `${names.slice(0, NAMES_MAX).join(", ")} and ${more} more` : names.join(", ");
}
