/** The params of the OpenAI-compatible provider. */

import type { ChatCompletionCreateParamsStreaming } from "openai/resources/chat/completions";
import { invalidArgument } from "../base/errors.ts";
import {
  OUTPUT_SCHEMA_NAME,
  readBoolean,
  readEffort,
  readNumber,
  readObject,
  readOutputSchema,
  readStop,
  readText,
  readWhole,
  readWord,
  type ParamTable,
} from "./params.ts";

/** Which field of the request `max_tokens` becomes; see `OpenAiProviderOptions.maxTokensField`. */
export type MaxTokensField = "max_tokens" | "max_completion_tokens";

/** Whether reasoning that a server sent goes back to it. */
export type ReasoningHistoryWord = "keep" | "drop";

/** What the params say: fields of the request, and what is no field of its own. */
type Options = ChatCompletionCreateParamsStreaming & { reasoningHistory: ReasoningHistoryWord };

/** The params that the provider knows. Values outside the provider's documented ranges are refused before anything is sent. */
export function openAiParams(maxTokensField: MaxTokensField): ParamTable<Options> {
  return {
    temperature: (value, field) => ({ temperature: readNumber(value, field, 0, 2) }),
    top_p: (value, field) => ({ top_p: readNumber(value, field, 0, 1) }),
    max_tokens: (value, field) => ({ [maxTokensField]: readWhole(value, field, 1) }),
    max_completion_tokens: (value, field) => ({ max_completion_tokens: readWhole(value, field, 1) }),
    stop: (value, field) => ({ stop: readStop(value, field) }),
    // oxlint-disable-next-line typescript/no-deprecated -- The vendor discourages it; compatible servers live by it.
    seed: (value, field) => ({ seed: readWhole(value, field, Number.MIN_SAFE_INTEGER) }),
    frequency_penalty: (value, field) => ({ frequency_penalty: readNumber(value, field, -2, 2) }),
    presence_penalty: (value, field) => ({ presence_penalty: readNumber(value, field, -2, 2) }),
    reasoning_effort: (value, field) => ({ reasoning_effort: readEffort(value, field) }),
    reasoning_history: (value, field) => ({ reasoningHistory: readWord(value, field, ["keep", "drop"] as const) }),
    verbosity: (value, field) => ({ verbosity: readWord(value, field, ["low", "medium", "high"] as const) }),
    output_schema: (value, field) => ({
      response_format: {
        type: "json_schema",
        json_schema: { name: OUTPUT_SCHEMA_NAME, schema: readOutputSchema(value, field), strict: true },
      },
    }),
    response_format: (value, field) => ({ response_format: readResponseFormat(value, field) }),
    parallel_tool_calls: (value, field) => ({ parallel_tool_calls: readBoolean(value, field) }),
    prompt_cache_key: (value, field) => ({ prompt_cache_key: readText(value, field) }),
    service_tier: (value, field) => ({
      service_tier: readWord(value, field, ["auto", "default", "flex", "scale", "priority"] as const),
    }),
    safety_identifier: (value, field) => ({ safety_identifier: readText(value, field) }),
  };
}

type JsonSchemaFormat = Extract<NonNullable<Options["response_format"]>, { type: "json_schema" }>["json_schema"];

/** `text`, `json_object`, or a JSON object `{"type": "json_schema", "json_schema": {"name": …}}`, whose schema the provider checks. */
function readResponseFormat(value: string, field: string): NonNullable<Options["response_format"]> {
  if (value === "text" || value === "json_object") return { type: value };
  const { type, json_schema: schema } = readObject(value, field);
  if (type !== "json_schema" || !isNamedSchema(schema)) {
    throw invalidArgument(field, 'must be text, json_object, or {"type": "json_schema", "json_schema": {"name": …}}');
  }
  return { type, json_schema: schema };
}

function isNamedSchema(value: unknown): value is JsonSchemaFormat {
  return typeof value === "object" && value !== null && "name" in value && typeof value.name === "string";
}
