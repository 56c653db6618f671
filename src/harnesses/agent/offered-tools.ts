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

function mediationOf(name: string, { free, ask }: Agent["tools"]): Mediation | undefined {
  if (ask.some((pattern) => matches(pattern, name))) return Mediation.REQUIRES_APPROVAL;
  return free.some((pattern) => matches(pattern, name)) ? Mediation.CONTROLLER_MEDIATED : undefined;
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
