/** What the config of a turn says of the turn's client. Pure. */

import { isGlobOf } from "../../controller/index.ts";
import type { ObservationSource, ToolCategory } from "../../spi/index.ts";

/** A tool that the turn's client runs. */
export interface TurnClientTool {
  readonly category: ToolCategory;
  readonly timeoutMs: number;
}

/** The facts of a turn. */
export interface TurnFacts {
  /** The message that it answers; "" where the config does not say. */
  readonly messageId: string;
  readonly clientTools: ReadonlyMap<string, TurnClientTool>;
  /** Patterns of the tools that only read or compute. */
  readonly pure: readonly string[];
  readonly isOoda: boolean;
  /** Absent where the agent looks at nothing. */
  readonly observation?: ObservationSource | undefined;
  /** The largest request, in tokens; undefined for the agent's default. */
  readonly contextTokensMax: number | undefined;
}

const NOTHING: TurnFacts = { messageId: "", clientTools: new Map(), pure: [], isOoda: false, contextTokensMax: undefined };

/** The facts in a config; whatever is of another form says nothing. */
export function turnFactsOf(config: Uint8Array): TurnFacts {
  const { client, tools, mode, context } = record(jsonOf(config));
  if (client === undefined) return NOTHING;
  const { message_id: messageId, tools: clientTools, observation } = record(client);
  const { max_tokens: contextTokensMax } = record(context);
  return {
    messageId: text(messageId),
    clientTools: new Map(list(clientTools).flatMap(toolEntry)),
    pure: list(record(tools)["pure"]).filter((pattern) => typeof pattern === "string"),
    isOoda: mode === "ooda_re_act",
    observation: observationOf(record(observation)),
    contextTokensMax: count(contextTokensMax),
  };
}

/** The category of a tool in a turn. */
export function categoryIn({ pure, observation }: TurnFacts, tool: string): ToolCategory {
  return tool === observation?.tool || pure.some((pattern) => isGlobOf(pattern, tool)) ? "pure" : "physical";
}

function toolEntry(tool: unknown): readonly (readonly [string, TurnClientTool])[] {
  const { name, category, timeout_ms: timeoutMs } = record(tool);
  const knownMs = count(timeoutMs);
  if (typeof name !== "string" || knownMs === undefined) return [];
  return [[name, { category: category === "pure" ? "pure" : "physical", timeoutMs: knownMs }]];
}

function observationOf({ tool, max_age_ms: maxAgeMs }: Readonly<Record<string, unknown>>): ObservationSource | undefined {
  const knownMs = count(maxAgeMs);
  return typeof tool === "string" && knownMs !== undefined ? { tool, maxAgeMs: knownMs } : undefined;
}

function jsonOf(config: Uint8Array): unknown {
  if (config.byteLength === 0) return undefined;
  try {
    return JSON.parse(new TextDecoder().decode(config));
  } catch {
    return undefined;
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
