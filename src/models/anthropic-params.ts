/** The params of the Anthropic provider. */

import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";
import { invalidArgument } from "../base/errors.ts";
import {
  readBoolean,
  readOutputSchema,
  readParams,
  readStop,
  readText,
  readWhole,
  readWord,
  refuseBoth,
  type ParamTable,
} from "./params.ts";

/** What the params say: fields of the request, and what is no field of its own. */
type Options = MessageCreateParamsStreaming & { parallelToolCalls: boolean; cache: CacheWord; prefixMismatch: PrefixMismatchWord };

/** How long the provider keeps a conversation in its prompt cache; `off` asks it to keep none. */
export type CacheWord = "off" | "5m" | "1h";
/** What the provider does with thinking whose conversation was changed before it. */
export type PrefixMismatchWord = "error" | "drop_block";

const ANTHROPIC_PARAMS: ParamTable<Options> = {
  max_tokens: (value, field) => ({ max_tokens: readWhole(value, field, 1) }),
  stop: (value, field) => ({ stop_sequences: readStop(value, field) }),
  thinking: (value, field) => ({ thinking: { type: readWord(value, field, ["adaptive", "disabled"] as const) } }),
  thinking_budget_tokens: (value, field) => ({
    thinking: { type: "enabled", budget_tokens: readWhole(value, field, THINKING_TOKENS_MIN) },
  }),
  effort: (value, field) => ({ output_config: { effort: readWord(value, field, EFFORTS) } }),
  reasoning_effort: (value, field) => ({ output_config: { effort: readWord(value, field, EFFORTS) } }),
  output_schema: (value, field) => ({ output_config: { format: { type: "json_schema", schema: readOutputSchema(value, field) } } }),
  parallel_tool_calls: (value, field) => ({ parallelToolCalls: readBoolean(value, field) }),
  cache: (value, field) => ({ cache: readWord(value, field, ["off", "5m", "1h"] as const) }),
  thinking_prefix_mismatch: (value, field) => ({ prefixMismatch: readWord(value, field, ["error", "drop_block"] as const) }),
  service_tier: (value, field) => ({ service_tier: readWord(value, field, ["auto", "standard_only"] as const) }),
  user_id: (value, field) => ({ metadata: { user_id: readText(value, field) } }),
};

const EFFORTS = ["low", "medium", "high", "xhigh", "max"] as const;

/** What the provider's API took before its version 2026-10-21, and now refuses at whatever value. */
const FORMER_PARAMS = ["temperature", "top_p", "top_k"];

/** The provider's own least budget for thinking. */
const THINKING_TOKENS_MIN = 1024;

/** The params of a request, read. */
export interface AnthropicParams {
  /** Fields of the request as they stand. */
  readonly fields: Partial<MessageCreateParamsStreaming> & { readonly max_tokens: number };
  /** False asks for one tool call at most. */
  readonly parallelToolCalls: boolean;
  readonly cache: CacheWord;
  /** Undefined leaves it to the provider. */
  readonly prefixMismatch: PrefixMismatchWord | undefined;
}

/**
 * The typed options of `params`. `max_tokens`, which this provider requires, is `maxTokensDefault` where it is not given, and
 * as much more than a thinking budget, since thinking counts against it. Throws INVALID_ARGUMENT naming `params.<name>`.
 */
export function readAnthropicParams(params: Readonly<Record<string, string>> | undefined, maxTokensDefault: number): AnthropicParams {
  for (const name of FORMER_PARAMS) {
    if (params?.[name] !== undefined) throw invalidArgument(`params.${name}`, "is not taken by this provider any more; leave it out");
  }
  refuseBoth(params, "thinking", "thinking_budget_tokens");
  refuseBoth(params, "effort", "reasoning_effort");
  const { parallelToolCalls = true, cache = "5m", prefixMismatch, ...fields } = readParams(params, ANTHROPIC_PARAMS);
  if (prefixMismatch !== undefined && fields.thinking?.type === "disabled") {
    throw invalidArgument("params.thinking_prefix_mismatch", "goes with thinking only");
  }
  const budget = fields.thinking?.type === "enabled" ? fields.thinking.budget_tokens : 0;
  const maxTokens = fields.max_tokens ?? maxTokensDefault + budget;
  if (maxTokens <= budget) throw invalidArgument("params.max_tokens", "must be more than params.thinking_budget_tokens");
  return { fields: { ...fields, max_tokens: maxTokens }, parallelToolCalls, cache, prefixMismatch };
}
