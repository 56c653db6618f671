/**
 * What a run throws, told to the author on standard error: the host records that a turn was interrupted, and never the harness's own words.
 *
 * Invariants: what is thrown is passed on as it is. Nothing is written of what has a place of its own: a `HarnessFailure`, which is
 * journaled; a run that was told to stop; a run that unwinds since a call of it waits for a decision.
 */

import { inspect } from "node:util";
import { ApprovalParkedError, HarnessFailure } from "../../spi/faults.ts";
import type { Harness } from "../../spi/harness.ts";

/** The most characters that are written of one throw. */
const CHARACTERS_MAX = 16_384;

/** The same harness, which writes the stack of whatever its runs throw with `write`. */
export function tellingThrows(harness: Harness, write: (text: string) => void): Harness {
  return {
    describe: (options) => harness.describe(options),
    run: async (start, sink, options) => {
      try {
        await harness.run(start, sink, options);
      } catch (error) {
        if (!options.signal.aborted) tell(error, write);
        throw error;
      }
    },
  };
}

function tell(thrown: unknown, write: (text: string) => void): void {
  const words = wordsOf(thrown);
  if (words === undefined) return;
  write(`harness: a run threw; its turn is interrupted and can be resumed\n${words.slice(0, CHARACTERS_MAX)}\n`);
}

/** The stack and whatever else Node tells of it; undefined for what has a place of its own. JavaScript can throw what nobody can look at. */
function wordsOf(thrown: unknown): string | undefined {
  try {
    return thrown instanceof HarnessFailure || isPark(thrown) ? undefined : inspect(thrown);
  } catch {
    return "what was thrown cannot be read";
  }
}

/** Whether it is nothing but parks, however wrapped. */
function isPark(error: unknown): boolean {
  if (error instanceof ApprovalParkedError) return true;
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isPark);
  return error instanceof Error && error.cause !== undefined && isPark(error.cause);
}
