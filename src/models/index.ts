/** Model providers: echo, OpenAI-compatible servers, Anthropic, Google, and the catalogue that finds them by a model's id. */

export { ANTHROPIC_MAX_TOKENS_DEFAULT, createAnthropicProvider, type AnthropicProviderOptions } from "./anthropic.ts";
export { createModelCatalog, type ModelCatalogOptions, type ModelRoute } from "./catalog.ts";
export { createEchoProvider } from "./echo.ts";
export { createGoogleProvider, type GoogleProviderOptions } from "./google.ts";
export { PROVIDER_LIMITS, type ProviderLimits } from "./limits.ts";
export { createOpenAiProvider, type OpenAiApi, type OpenAiProviderOptions } from "./openai.ts";
export type { MaxTokensField } from "./openai-params.ts";
export type { RemoteProviderOptions } from "./provider-options.ts";
export type { MatchEntry } from "./match-table.ts";
export { checkPrice, type ModelPrice } from "./prices.ts";
export { createServedModels, FALLBACK_PARAM, type ServingOptions } from "./serving.ts";
export { parseScript, type Script, type ScriptCall, type ScriptEntry, type ScriptMatch } from "./script.ts";
export { createScriptedModel } from "./scripted.ts";
