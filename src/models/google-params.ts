/** The params of the Google provider. */

import type { GenerationConfig } from "./google-wire.ts";
import {
  readBoolean,
  readNumber,
  readOutputSchema,
  readParams,
  readStop,
  readText,
  readWhole,
  readWord,
  refuseBoth,
  type ParamTable,
} from "./params.ts";

/** What the params say: fields of the request's body. */
export interface GoogleParams {
  generationConfig: GenerationConfig;
  cachedContent: string;
}

const GOOGLE_PARAMS: ParamTable<GoogleParams> = {
  temperature: (value, field) => ({ generationConfig: { temperature: readNumber(value, field, 0, 2) } }),
  top_p: (value, field) => ({ generationConfig: { topP: readNumber(value, field, 0, 1) } }),
  top_k: (value, field) => ({ generationConfig: { topK: readWhole(value, field, 1) } }),
  max_tokens: (value, field) => ({ generationConfig: { maxOutputTokens: readWhole(value, field, 1) } }),
  stop: (value, field) => ({ generationConfig: { stopSequences: readStop(value, field) } }),
  seed: (value, field) => ({ generationConfig: { seed: readWhole(value, field, Number.MIN_SAFE_INTEGER) } }),
  frequency_penalty: (value, field) => ({ generationConfig: { frequencyPenalty: readNumber(value, field, -2, 2) } }),
  presence_penalty: (value, field) => ({ generationConfig: { presencePenalty: readNumber(value, field, -2, 2) } }),
  output_schema: (value, field) => ({
    generationConfig: { responseMimeType: "application/json", responseJsonSchema: readOutputSchema(value, field) },
  }),
  cached_content: (value, field) => ({ cachedContent: readText(value, field) }),
};

/** Read apart: they are fields of one object within `generationConfig`. */
const THINKING_PARAMS: ParamTable<NonNullable<GenerationConfig["thinkingConfig"]>> = {
  reasoning_effort: (value, field) => ({ thinkingLevel: readWord(value, field, ["minimal", "low", "medium", "high"] as const) }),
  // -1 lets the model choose.
  thinking_budget_tokens: (value, field) => ({ thinkingBudget: readWhole(value, field, -1) }),
  include_thoughts: (value, field) => ({ includeThoughts: readBoolean(value, field) }),
};

/** The typed options of `params`. Throws INVALID_ARGUMENT naming `params.<name>`. */
export function readGoogleParams(params: Readonly<Record<string, string>> | undefined): Partial<GoogleParams> {
  refuseBoth(params, "reasoning_effort", "thinking_budget_tokens");
  const ofThinking = Object.entries(params ?? {}).filter(([name]) => Object.hasOwn(THINKING_PARAMS, name));
  const others = Object.entries(params ?? {}).filter(([name]) => !Object.hasOwn(THINKING_PARAMS, name));
  const options = readParams(Object.fromEntries(others), GOOGLE_PARAMS, Object.keys(THINKING_PARAMS));
  if (ofThinking.length === 0) return options;
  const thinkingConfig = readParams(Object.fromEntries(ofThinking), THINKING_PARAMS);
  return { ...options, generationConfig: { ...options.generationConfig, thinkingConfig } };
}
