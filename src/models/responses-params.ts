/** The params of OpenAI's Responses API. */

import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses";
import {
  OUTPUT_SCHEMA_NAME,
  readBoolean,
  readEffort,
  readNumber,
  readOutputSchema,
  readText,
  readWhole,
  readWord,
  type ParamTable,
} from "./params.ts";

/** The params that the provider knows; those that it shares with chat completions have the same names. */
export const RESPONSES_PARAMS: ParamTable<ResponseCreateParamsStreaming> = {
  temperature: (value, field) => ({ temperature: readNumber(value, field, 0, 2) }),
  top_p: (value, field) => ({ top_p: readNumber(value, field, 0, 1) }),
  max_tokens: (value, field) => ({ max_output_tokens: readWhole(value, field, 1) }),
  max_completion_tokens: (value, field) => ({ max_output_tokens: readWhole(value, field, 1) }),
  reasoning_effort: (value, field) => ({ reasoning: { effort: readEffort(value, field) } }),
  reasoning_summary: (value, field) => ({ reasoning: { summary: readWord(value, field, ["auto", "concise", "detailed"] as const) } }),
  verbosity: (value, field) => ({ text: { verbosity: readWord(value, field, ["low", "medium", "high"] as const) } }),
  output_schema: (value, field) => ({
    text: { format: { type: "json_schema", name: OUTPUT_SCHEMA_NAME, schema: readOutputSchema(value, field), strict: true } },
  }),
  parallel_tool_calls: (value, field) => ({ parallel_tool_calls: readBoolean(value, field) }),
  prompt_cache_key: (value, field) => ({ prompt_cache_key: readText(value, field) }),
  service_tier: (value, field) => ({ service_tier: readWord(value, field, ["auto", "default", "flex", "scale", "priority"] as const) }),
  safety_identifier: (value, field) => ({ safety_identifier: readText(value, field) }),
};
