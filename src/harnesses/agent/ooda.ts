/**
 * The mode ooda_re_act: what its model is told, and when its turn has to stop. Pure.
 *
 * Invariant: nobody acts blind. Where it is not known how things stand the model is not asked, so nothing physical is called.
 */

import { isUnknownOutcome, type ToolDefinition, type ToolResult } from "../../spi/index.ts";
import { failure } from "./failure.ts";

/** So many physical calls in a row may be refused because their observation was too old. */
const STALE_MAX = 3;

/** What the model is told of the mode, behind its instructions. */
export const OODA_RULES = `Before each of your answers you are shown an observation of how things stand; the newest one counts. Tools that act on the world outside run
one at a time: call one of them, and decide on the next one when you have seen what is observed after it.`;

/** Throws where a turn has no tool that observes. Decided by what was recorded with its start. */
export function checkObserver(tool: string, hostTools: readonly ToolDefinition[]): void {
  if (tool === "")
    throw failure("failed_precondition", "observation: the mode ooda_re_act needs a tool that observes; set observation.tool");
  if (hostTools.some(({ name }) => name === tool)) return;
  throw failure("failed_precondition", `observation: the tool ${tool} is not on offer, so the model was not asked; start the turn with it`);
}

/** What ends a turn whose observation came to nothing. */
export function unobserved(tool: string, result: ToolResult): Error {
  const what = isUnknownOutcome(result) ? "has an unknown outcome" : result.isError ? "failed" : "has nothing in it";
  return failure(
    "failed_precondition",
    `observation: the call of ${tool} ${what}, so the model was not asked; a further turn observes again`,
  );
}

/** Counts physical calls that were refused, one after the other, because what they were decided on was too old. */
export class StaleCalls {
  #inRow = 0;

  /** Takes the result of a physical call. Throws where it is one refusal too many. */
  take(result: ToolResult): void {
    this.#inRow = result.isError && result.output?.["stale_observation"] === true ? this.#inRow + 1 : 0;
    if (this.#inRow < STALE_MAX) return;
    const why = `${STALE_MAX} physical calls in a row were refused because what was observed was too old by then`;
    throw failure("failed_precondition", `observation: ${why}; a further turn observes again`);
  }
}
