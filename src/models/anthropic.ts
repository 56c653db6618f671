/**
 * The Anthropic provider: messages, streamed, through the vendor's client. The client is loaded on first use.
 *
 * The client decides nothing: it does not retry, follow redirects, log or trace, and reads no address, key or profile from the
 * environment (of its environment only ANTHROPIC_CUSTOM_HEADERS is left, which it adds to every request by itself). The path is
 * called directly, since the client's own method writes warnings about models to the host's console.
 */

import type { ClientOptions } from "@anthropic-ai/sdk";
import type { ModelChunk, ModelProvider, ModelRequest } from "../spi/index.ts";
import { ANTHROPIC, anthropicRequestBody, BINDING_BETA, type AnthropicRequestOptions } from "./anthropic-request.ts";
import { translateAnthropic } from "./anthropic-stream.ts";
import { runCompletion, type Attempt } from "./completion.ts";
import { callIdsOf } from "./content.ts";
import { resolveLimits } from "./limits.ts";
import { checkApiKey, checkBaseUrl, lazily, type RemoteProviderOptions } from "./provider-options.ts";
import { faultOfSdkError } from "./sdk-fault.ts";
import { observedFetch } from "./transport.ts";
import { newCallId } from "./call-id.ts";
import { invalidArgument } from "../base/errors.ts";

const ANTHROPIC_BASE_URL = "https://api.anthropic.com";

/** What `max_tokens` is where a request does not say: the provider requires it. All models served today can write as much. */
export const ANTHROPIC_MAX_TOKENS_DEFAULT = 16_384;

/** Options of the Anthropic provider. */
export interface AnthropicProviderOptions extends RemoteProviderOptions {
  readonly apiKey: string;
  /** The prefix of a model's id that is the host's routing and is not sent. Default `anthropic/`; "" for none. */
  readonly modelPrefix?: string | undefined;
  /** `max_tokens` where a request has none. Default 16 384. */
  readonly maxTokensDefault?: number | undefined;
}

const loadSdk = lazily(() => import("@anthropic-ai/sdk"));

/** The Anthropic provider. Throws INVALID_ARGUMENT for options that cannot work. */
export function createAnthropicProvider(options: AnthropicProviderOptions): ModelProvider {
  const { clock, random } = options;
  const limits = resolveLimits(options.limits);
  const requestOptions: AnthropicRequestOptions = {
    modelPrefix: options.modelPrefix ?? "anthropic/",
    maxTokensDefault: checkMaxTokens(options.maxTokensDefault ?? ANTHROPIC_MAX_TOKENS_DEFAULT),
  };
  const clientOptions: ClientOptions = {
    baseURL: checkBaseUrl(options.baseUrl ?? ANTHROPIC_BASE_URL),
    apiKey: checkApiKey(options.apiKey),
    webhookKey: null,
    maxRetries: 0,
    timeout: limits.firstByteTimeoutMs + SDK_TIMEOUT_MARGIN_MS,
    logLevel: "off",
    openTelemetry: false,
  };

  async function* complete(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<ModelChunk> {
    const body = anthropicRequestBody(request, requestOptions);
    const headers = body.thinking !== undefined && "block_binding" in body.thinking ? { "anthropic-beta": BINDING_BETA } : {};
    const takenCallIds = callIdsOf(request.messages);
    const sdk = await loadSdk();
    const open = (attempt: Attempt): Promise<AsyncIterable<unknown>> => {
      const fetch = observedFetch({ onBytes: attempt.onBytes, answerBytesMax: limits.answerBytesMax, clock });
      const client = new sdk.Anthropic({ ...clientOptions, fetch });
      return client.post<AsyncIterable<unknown>>("/v1/messages", { body, stream: true, signal: attempt.signal, headers });
    };
    yield* runCompletion({
      provider: ANTHROPIC,
      limits,
      clock,
      random,
      signal,
      open,
      translate: () =>
        translateAnthropic({ provider: ANTHROPIC, modelId: request.model, takenCallIds, newCallId: () => newCallId(random) }),
      faultOf: (error) => faultOfSdkError(error, sdk, clock.nowMs()),
    });
  }

  return { name: ANTHROPIC, complete };
}

/** The client's own time-out, up to the answer's headers, must not come before the host's. */
const SDK_TIMEOUT_MARGIN_MS = 5_000;

function checkMaxTokens(maxTokens: number): number {
  if (Number.isSafeInteger(maxTokens) && maxTokens > 0) return maxTokens;
  throw invalidArgument("maxTokensDefault", "must be a whole number from 1");
}
