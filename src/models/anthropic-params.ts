/** The params of the Anthropic provider. */

import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";
import { invalidArgument } from "../base/errors.ts";
import { readParams, readStop, readText, readWhole, readWord, type ParamTable } from "./params.ts";

type Options = MessageCreateParamsStreaming;

const ANTHROPIC_PARAMS: ParamTable<Options> = {
  max_tokens: (value, field) => ({ max_tokens: readWhole(value, field, 1) }),
  stop: (value, field) => ({ stop_sequences: readStop(value, field) }),
  thinking: (value, field) => ({ thinking: { type: readWord(value, field, ["adaptive", "disabled"] as const) } }),
  thinking_budget_tokens: (value, field) => ({
    thinking: { type: "enabled", budget_tokens: readWhole(value, field, THINKING_TOKENS_MIN) },
  }),
  effort: (value, field) => ({
    output_config: { effort: readWord(value, field, ["low", "medium", "high", "xhigh", "max"] as const) },
  }),
  service_tier: (value, field) => ({ service_tier: readWord(value, field, ["auto", "standard_only"] as const) }),
  user_id: (value, field) => ({ metadata: { user_id: readText(value, field) } }),
};

/** What the provider's API took before its version 2026-10-21, and now refuses at whatever value. */
const FORMER_PARAMS = ["temperature", "top_p", "top_k"];

/** The provider's own least budget for thinking. */
const THINKING_TOKENS_MIN = 1024;

/**
 * The typed options of `params`. `max_tokens`, which this provider requires, is `maxTokensDefault` where it is not given, and
 * as much more than a thinking budget, since thinking counts against it. Throws INVALID_ARGUMENT naming `params.<name>`.
 */
export function readAnthropicParams(
  params: Readonly<Record<string, string>> | undefined,
  maxTokensDefault: number,
): Partial<Options> & { readonly max_tokens: number } {
  for (const name of FORMER_PARAMS) {
    if (params?.[name] !== undefined) throw invalidArgument(`params.${name}`, "is not taken by this provider any more; leave it out");
  }
  if (params?.["thinking"] !== undefined && params["thinking_budget_tokens"] !== undefined) {
    throw invalidArgument("params.thinking", "goes without params.thinking_budget_tokens");
  }
  const options = readParams(params, ANTHROPIC_PARAMS);
  const budget = options.thinking?.type === "enabled" ? options.thinking.budget_tokens : 0;
  const maxTokens = options.max_tokens ?? maxTokensDefault + budget;
  if (maxTokens <= budget) throw invalidArgument("params.max_tokens", "must be more than params.thinking_budget_tokens");
  return { ...options, max_tokens: maxTokens };
}
