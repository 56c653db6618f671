/**
 * The OpenAI-compatible provider: the Responses API or chat completions, streamed, through the vendor's client. The client is loaded on
 * first use.
 *
 * The client decides nothing: it does not retry, follow redirects or log, and reads no address, key or organisation from the
 * environment (of its environment only OPENAI_CUSTOM_HEADERS is left, which it adds to every request by itself).
 */

import type { ClientOptions } from "openai";
import type { ModelChunk, ModelProvider, ModelRequest } from "../spi/index.ts";
import { runCompletion, type Attempt, type Translation } from "./completion.ts";
import { callIdsOf } from "./content.ts";
import { resolveLimits } from "./limits.ts";
import type { MaxTokensField } from "./openai-params.ts";
import { openAiRequestBody, type OpenAiRequestOptions } from "./openai-request.ts";
import { translateOpenAi } from "./openai-stream.ts";
import type { AssemblyContext } from "./message-assembly.ts";
import { checkApiKey, checkBaseUrl, lazily, type RemoteProviderOptions } from "./provider-options.ts";
import { responsesRequestBody } from "./responses-request.ts";
import { translateResponses } from "./responses-stream.ts";
import { faultOfSdkError } from "./sdk-fault.ts";
import { observedFetch } from "./transport.ts";
import { newCallId } from "./call-id.ts";

const OPENAI_BASE_URL = "https://api.openai.com/v1";

/** The APIs of OpenAI and of servers like it. */
export type OpenAiApi = "responses" | "chat";

/** Options of an OpenAI-compatible provider. */
export interface OpenAiProviderOptions extends RemoteProviderOptions {
  /** The bearer key; undefined sends none, as for a server on the same machine. */
  readonly apiKey?: string | undefined;
  /** The name in logs, errors and reasoning parts. Default `openai`. */
  readonly name?: string | undefined;
  /**
   * Which of the two APIs is spoken. Default `responses` at OpenAI's own address, since only it hands OpenAI's reasoning back, and `chat` at
   * any other, which most servers know alone.
   */
  readonly api?: OpenAiApi | undefined;
  /** The prefix of a model's id that is the host's routing and is not sent. Default `openai/`; "" for none. */
  readonly modelPrefix?: string | undefined;
  /**
   * What the param `max_tokens` is called on the wire. Default `max_completion_tokens` at OpenAI's own address, whose newer
   * models refuse the old name, and `max_tokens` at any other, where many servers know no other.
   */
  readonly maxTokensField?: MaxTokensField | undefined;
  /** Ask for usage at the end of the stream. Default true; false for servers that refuse `stream_options`. */
  readonly includeUsage?: boolean | undefined;
  readonly organization?: string | undefined;
  readonly project?: string | undefined;
}

/** A request as one of the APIs wants it, and how its answer is read. */
interface Wire {
  readonly path: string;
  readonly body: object;
  readonly translate: (context: AssemblyContext) => Translation;
}

const loadSdk = lazily(() => import("openai"));

/** An OpenAI-compatible provider. Throws INVALID_ARGUMENT for options that cannot work. */
export function createOpenAiProvider(options: OpenAiProviderOptions): ModelProvider {
  const { clock, random } = options;
  const name = options.name ?? "openai";
  const baseUrl = checkBaseUrl(options.baseUrl ?? OPENAI_BASE_URL);
  const apiKey = options.apiKey === undefined ? undefined : checkApiKey(options.apiKey);
  const limits = resolveLimits(options.limits);
  const api = options.api ?? (isOpenAiItself(baseUrl) ? "responses" : "chat");
  const modelPrefix = options.modelPrefix ?? "openai/";
  const requestOptions: OpenAiRequestOptions = {
    provider: name,
    modelPrefix,
    maxTokensField: options.maxTokensField ?? (isOpenAiItself(baseUrl) ? "max_completion_tokens" : "max_tokens"),
    includeUsage: options.includeUsage ?? true,
  };
  const clientOptions: ClientOptions = {
    baseURL: baseUrl,
    // The client insists on a key; the header that it makes of this one is taken off again below.
    apiKey: apiKey ?? "none",
    adminAPIKey: null,
    organization: options.organization ?? null,
    project: options.project ?? null,
    webhookSecret: null,
    maxRetries: 0,
    timeout: limits.firstByteTimeoutMs + SDK_TIMEOUT_MARGIN_MS,
    logLevel: "off",
    defaultHeaders: apiKey === undefined ? { Authorization: null } : {},
  };

  const wireOf = (request: ModelRequest): Wire =>
    api === "responses"
      ? { path: "/responses", body: responsesRequestBody(request, { provider: name, modelPrefix }), translate: translateResponses }
      : { path: "/chat/completions", body: openAiRequestBody(request, requestOptions), translate: translateOpenAi };

  async function* complete(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<ModelChunk> {
    const { path, body, translate } = wireOf(request);
    const takenCallIds = callIdsOf(request.messages);
    const sdk = await loadSdk();
    const open = (attempt: Attempt): Promise<AsyncIterable<unknown>> => {
      const fetch = observedFetch({ onBytes: attempt.onBytes, answerBytesMax: limits.answerBytesMax, clock });
      const client = new sdk.OpenAI({ ...clientOptions, fetch });
      return client.post<AsyncIterable<unknown>>(path, { body, stream: true, signal: attempt.signal });
    };
    yield* runCompletion({
      provider: name,
      limits,
      clock,
      random,
      signal,
      open,
      translate: () => translate({ provider: name, modelId: request.model, takenCallIds, newCallId: () => newCallId(random) }),
      faultOf: (error) => faultOfSdkError(error, sdk, clock.nowMs()),
    });
  }

  return { name, complete };
}

/** The client's own time-out, up to the answer's headers, must not come before the host's. */
const SDK_TIMEOUT_MARGIN_MS = 5_000;

function isOpenAiItself(baseUrl: string): boolean {
  return new URL(baseUrl).hostname === new URL(OPENAI_BASE_URL).hostname;
}
