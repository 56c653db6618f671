/**
 * The tools of one turn: the client's, and those of the host that the environment offers at the host that was chosen, each with its
 * category. Pure.
 *
 * Invariant: a name is one tool. Where the client and the host both have it, it acts on the world if either says so.
 */

import { isGlobOf } from "../../controller/index.ts";
import type { Environment, EnvironmentTools, ToolCategory } from "../../spi/index.ts";
import type { ResolvedHost } from "./hosts.ts";
import type { CategorisedTool } from "./permissions.ts";

/** What a turn has to choose from. */
export interface ToolSources {
  readonly clientTools: readonly CategorisedTool[];
  /** Names of the tools that the host has. */
  readonly hostTools: readonly string[];
  readonly host: ResolvedHost;
}

/** The tools of one turn that are on offer at most; what an agent's definition takes in one list. */
export const TURN_TOOLS_MAX = 1_000;

/** The tools that are on offer, each once: the client's first, both in their order. Those beyond TURN_TOOLS_MAX are not. */
export function offeredTools(environment: Environment, { clientTools, hostTools, host }: ToolSources): readonly CategorisedTool[] {
  const offered = new Map<string, ToolCategory>();
  const add = (name: string, category: ToolCategory): void => {
    offered.set(name, offered.get(name) === "physical" ? "physical" : category);
  };
  for (const { name, category } of clientTools) add(name, category);
  for (const name of hostTools) {
    const category = host.tools.some((pattern) => isGlobOf(pattern, name)) ? categoryOf(name, environment.tools) : undefined;
    if (category !== undefined) add(name, category);
  }
  // Looking is not acting, whatever a client or a pattern says of the tool; the environment's author has named it for that.
  const source = host.observation?.tool;
  if (source !== undefined && (offered.has(source) || hostTools.includes(source))) offered.set(source, "pure");
  return [...offered].slice(0, TURN_TOOLS_MAX).map(([name, category]) => ({ name, category }));
}

/** The category of one of the host's tools; undefined where it is not on offer. */
function categoryOf(name: string, { pure, physical }: EnvironmentTools): ToolCategory | undefined {
  const [acts, reads] = [fitOf(physical, name), fitOf(pure, name)];
  if (acts < 0 && reads < 0) return undefined;
  return acts >= reads ? "physical" : "pure";
}

/** How well the best of the patterns fits: the name itself, then the longest; -1 where none does. */
function fitOf(patterns: readonly string[], name: string): number {
  let best = -1;
  for (const pattern of patterns) {
    if (pattern === name) return Number.POSITIVE_INFINITY;
    if (isGlobOf(pattern, name)) best = Math.max(best, pattern.length);
  }
  return best;
}
