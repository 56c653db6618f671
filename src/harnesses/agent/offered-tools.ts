/** Which of the host's tools an agent is offered, and what stands between the model and each. */

import { Mediation, type ToolDefinition } from "../../spi/index.ts";
import type { Agent, BlockedTools } from "./definition.ts";

/** The tools of one turn. They are those that were recorded with its start, whatever the host has meanwhile. */
export interface OfferedTools {
  /** In the host's order. */
  readonly definitions: readonly ToolDefinition[];
  /** By name; what is not here is not on offer. */
  readonly mediations: ReadonlyMap<string, Mediation>;
  /** Why a tool is kept from the model, in words for it; undefined for one that is on offer, and for one that nobody knows. */
  readonly withheld: (name: string) => string | undefined;
  /** Whether a tool changes something outside; of what nobody knows it is said that it does. Without a mode no tool is told from others. */
  readonly isPhysical: (name: string) => boolean;
}

/** What of an agent says which tools it has. */
export type ToolRules = Pick<Agent, "tools" | "mode">;

/** The tools among the host's that the agent names. */
export function offeredTools(hostTools: readonly ToolDefinition[], rules: ToolRules): OfferedTools {
  const mediations = new Map<string, Mediation>();
  const elsewhere = new Set<string>();
  const isPhysical = (name: string): boolean => rules.mode !== undefined && fitOf(rules.tools.pure, name) < 0;
  const definitions = hostTools.filter(({ name }) => {
    const mediation = mediationOf(name, rules.tools);
    if (mediation === undefined) return false;
    const isOffered = rules.mode !== "react" || !isPhysical(name);
    if (isOffered) mediations.set(name, mediation);
    else elsewhere.add(name);
    return isOffered;
  });
  const withheld = (name: string): string | undefined => {
    const blocked = blockedBy(name, rules.tools);
    if (blocked !== undefined) return `this tool is blocked, so nothing was run${blocked.reason === "" ? "" : `: ${blocked.reason}`}`;
    return elsewhere.has(name) ? "this is a physical tool, which belongs to the mode ooda_re_act; nothing was run" : undefined;
  };
  return { definitions, mediations, withheld, isPhysical };
}

/** What fits a name best decides: the name itself, then the longest start of it. Where both lists have that, a person is asked. */
function mediationOf(name: string, tools: Agent["tools"]): Mediation | undefined {
  const [asked, freely] = [fitOf(tools.ask, name), fitOf(tools.free, name)];
  if ((asked < 0 && freely < 0) || blockedBy(name, tools) !== undefined) return undefined;
  return asked >= freely ? Mediation.REQUIRES_APPROVAL : Mediation.CONTROLLER_MEDIATED;
}

/** What blocks a tool, where nothing that fits its name better lets it run. */
function blockedBy(name: string, { free, ask, blocked }: Agent["tools"]): BlockedTools | undefined {
  const fits = blocked.map(({ pattern }) => fitOf([pattern], name));
  const best = Math.max(-1, ...fits);
  return best < 0 || best < Math.max(fitOf(free, name), fitOf(ask, name)) ? undefined : blocked[fits.indexOf(best)];
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
