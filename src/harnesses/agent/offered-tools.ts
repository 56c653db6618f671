/** Which of the host's tools an agent is offered, and what stands between the model and each. */

import { Mediation, type ToolDefinition } from "../../spi/index.ts";
import type { Agent } from "./definition.ts";

/** The tools of one turn. They are those that were recorded with its start, whatever the host has meanwhile. */
export interface OfferedTools {
  /** In the host's order. */
  readonly definitions: readonly ToolDefinition[];
  /** By name; what is not here is not on offer. */
  readonly mediations: ReadonlyMap<string, Mediation>;
}

/** The tools among the host's that the agent names. */
export function offeredTools(hostTools: readonly ToolDefinition[], { free, ask }: Agent["tools"]): OfferedTools {
  const mediations = new Map<string, Mediation>();
  const definitions = hostTools.filter(({ name }) => {
    const mediation = mediationOf(name, { free, ask });
    if (mediation !== undefined) mediations.set(name, mediation);
    return mediation !== undefined;
  });
  return { definitions, mediations };
}

/** What fits a name best decides: the name itself, then the longest start of it. Where both lists have that, a person is asked. */
function mediationOf(name: string, { free, ask }: Agent["tools"]): Mediation | undefined {
  const [asked, freely] = [fitOf(ask, name), fitOf(free, name)];
  if (asked < 0 && freely < 0) return undefined;
  return asked >= freely ? Mediation.REQUIRES_APPROVAL : Mediation.CONTROLLER_MEDIATED;
}

/** How well the best of the patterns fits; -1 where none does. */
function fitOf(patterns: readonly string[], name: string): number {
  let best = -1;
  for (const pattern of patterns) {
    if (pattern === name) return Number.POSITIVE_INFINITY;
    if (pattern.endsWith("*") && name.startsWith(pattern.slice(0, -1))) best = Math.max(best, pattern.length - 1);
  }
  return best;
}
