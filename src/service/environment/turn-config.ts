/**
 * The config of one turn: what its environment and its client come to, as the `agent` harness reads it. Pure.
 *
 * Invariants:
 * - It is journaled with the turn, and all that the turn needs of its client after a restart is in it (`client`).
 * - Every tool on offer is named in one of the lists `free`, `ask` and `blocked`, and by its own name: what a rule or a pattern says
 *   later changes nothing of a turn.
 */

import { invalidArgument } from "../../base/errors.ts";
import type { Environment, ToolCategory } from "../../spi/index.ts";
import { AGENT_HARNESS } from "./defaults.ts";
import type { ResolvedHost } from "./hosts.ts";
import { offeredTools } from "./offered.ts";
import { permissionFor } from "./permissions.ts";

/** How an agent goes about its turn: tools that only read, or a look before each act. */
export type TurnMode = "react" | "ooda_re_act";

/** A tool that a client runs. */
export interface ClientTool {
  readonly name: string;
  readonly category: ToolCategory;
  /** How long a call may take once the client has been asked, in milliseconds. */
  readonly timeoutMs: number;
}

/** What a client has said of a turn. */
export interface EnvironmentTurn {
  /** Undefined for a turn that knows no categories: every tool is on offer, and nothing is looked at. */
  readonly mode?: TurnMode | undefined;
  /** What the client's message calls the mode, for errors. Default `ai_mode`. */
  readonly modeField?: string | undefined;
  /** Where it runs, as `resolveHost` says. */
  readonly host: ResolvedHost;
  readonly clientTools: readonly ClientTool[];
  /** Names of the tools that this server can run now; those that the environment offers are chosen from them. */
  readonly hostTools: readonly string[];
  /** Blocks of text that stand behind the environment's own instructions. */
  readonly projectContext: readonly string[];
  /** As `resolveContextTokens` says. */
  readonly maxContextTokens?: number | undefined;
  /** As `resolveModel` says; "" for the session's. */
  readonly model: string;
  readonly messageId: string;
}

/** A config as the `agent` harness takes it; the keys are those of an AgentDefinition. */
export interface TurnDefinition {
  readonly system_prompt?: string;
  readonly model?: string;
  readonly params?: unknown;
  readonly tools: {
    readonly free: readonly string[];
    readonly ask: readonly string[];
    readonly blocked: readonly { readonly tool: string; readonly reason: string }[];
    readonly pure: readonly string[];
  };
  readonly max_steps?: unknown;
  readonly steering?: unknown;
  readonly context?: { readonly max_tokens: number };
  readonly mode?: TurnMode;
  readonly observation?: { readonly tool: string };
  /** What the harness passes over. */
  readonly client: {
    readonly message_id: string;
    readonly tools: readonly { readonly name: string; readonly category: ToolCategory; readonly timeout_ms: number }[];
    readonly observation?: { readonly tool: string; readonly max_age_ms: number };
  };
}

/** The config of a turn as it is journaled; empty where another harness than `agent` drives it. Throws as `agentDefinition` does. */
export function turnConfig(environment: Environment, turn: EnvironmentTurn): Uint8Array {
  if (turn.host.harness !== AGENT_HARNESS) return new Uint8Array();
  return new TextEncoder().encode(JSON.stringify(agentDefinition(environment, turn)));
}

/** The agent of one turn. Throws INVALID_ARGUMENT that names `modeField` for a mode that looks, where there is nothing to look at. */
export function agentDefinition(environment: Environment, turn: EnvironmentTurn): TurnDefinition {
  const { mode, modeField = "ai_mode", model, maxContextTokens, host, clientTools, messageId } = turn;
  const { params, max_steps: maxSteps, steering } = environment.agent;
  const prompt = promptOf(environment, turn);
  const observation = mode === "ooda_re_act" ? host.observation : undefined;
  if (mode === "ooda_re_act" && observation === undefined) {
    throw invalidArgument(modeField, "must be react: the environment has no observation source, which ooda_re_act needs");
  }
  return {
    ...(prompt === "" ? {} : { system_prompt: prompt }),
    ...(model === "" ? {} : { model }),
    ...(params === undefined ? {} : { params }),
    tools: toolsOf(environment, turn),
    ...(maxSteps === undefined ? {} : { max_steps: maxSteps }),
    ...(steering === undefined ? {} : { steering }),
    ...(maxContextTokens === undefined ? {} : { context: { max_tokens: maxContextTokens } }),
    ...(mode === undefined ? {} : { mode }),
    ...(observation === undefined ? {} : { observation: { tool: observation.tool } }),
    client: {
      message_id: messageId,
      tools: clientTools.map(({ name, category, timeoutMs }) => ({ name, category, timeout_ms: timeoutMs })),
      ...(observation === undefined ? {} : { observation: { tool: observation.tool, max_age_ms: observation.maxAgeMs } }),
    },
  };
}

/** The instructions that all turns have in common come first, so that requests begin alike. */
function promptOf({ agent }: Environment, { projectContext }: EnvironmentTurn): string {
  const own = typeof agent["system_prompt"] === "string" ? agent["system_prompt"] : "";
  return [own, ...projectContext].filter((block) => block.trim() !== "").join("\n\n");
}

/** What is said of a tool that is blocked where the rule says nothing. */
const BLOCKED = "it is blocked in this environment";

function toolsOf(environment: Environment, turn: EnvironmentTurn): TurnDefinition["tools"] {
  const [free, ask, pure]: [string[], string[], string[]] = [[], [], []];
  const blocked: { tool: string; reason: string }[] = [];
  for (const tool of offeredTools(environment, turn)) {
    const { name, category } = tool;
    const { policy, reason } = permissionFor(tool, environment);
    switch (policy) {
      case "allow":
        free.push(name);
        break;
      case "require_confirmation":
        ask.push(name);
        break;
      case "block":
        blocked.push({ tool: name, reason: reason === "" ? BLOCKED : reason });
    }
    if (category === "pure") pure.push(name);
  }
  return { free, ask, blocked, pure };
}
