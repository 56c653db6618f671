/** The model SPI: what the host asks of a provider, and how a provider answers. */

import type { Message, ToolChoice, ToolDefinition, Usage } from "./wire.ts";

/** One model call as a harness asks for it. Its input hash is what replay compares (I0). */
export interface ModelRequest {
  /** The model's id, as the provider or the host's routing knows it. */
  readonly model: string;
  /** The whole context that is sent, in order. */
  readonly messages: readonly Message[];
  /** Provider options as strings (`temperature`, `max_tokens` …). An empty record and an absent one are the same. */
  readonly params?: Readonly<Record<string, string>> | undefined;
  /** The tools offered on this call; their order counts. */
  readonly tools?: readonly ToolDefinition[] | undefined;
  /** Absent leaves the choice to the provider's default. */
  readonly toolChoice?: ToolChoice | undefined;
}

/** A completion: an assistant message and what it cost. */
export interface ModelResponse {
  readonly message: Message;
  readonly usage: Usage;
}

/** What the contract's Usage has no field for; kept beside the record, outside the chain. */
export interface ModelFacts {
  /** Why the provider stopped, in the provider's own word. */
  readonly stopReason?: string | undefined;
  /** Input tokens that the provider read from its cache. */
  readonly cachedInputTokens?: number | undefined;
  /** Input tokens that the provider wrote to its cache. */
  readonly cacheWriteTokens?: number | undefined;
  /** Milliseconds from the request to the whole completion. */
  readonly latencyMs?: number | undefined;
  /** How many requests it took, safe retries included. */
  readonly attempts?: number | undefined;
  /** The id of the model that answered: another than the request's where a fallback answered. */
  readonly model?: string | undefined;
  /** The name of the provider that answered. */
  readonly provider?: string | undefined;
  /** What the call cost by the host's price table, in billionths of a US dollar, rounded up; absent without a price. */
  readonly costNanoDollars?: number | undefined;
}

/** One item of a completion as it arrives. Exactly one `completed` comes, and it comes last. */
export type ModelChunk =
  | { readonly kind: "text"; readonly partIndex: number; readonly text: string }
  | { readonly kind: "reasoning"; readonly partIndex: number; readonly text: string }
  | { readonly kind: "completed"; readonly response: ModelResponse; readonly facts: ModelFacts };

/** A source of completions. */
export interface ModelProvider {
  /** A short name for logs and errors, such as `openai`. */
  readonly name: string;
  /**
   * Runs one completion. Retries that are safe happen inside, before the first chunk was yielded and never after it.
   * Rejects with a HoldfastError whose message holds neither the provider's text nor a key; `signal` stops the request.
   */
  complete(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelChunk>;
}

/** Finds the provider that serves a model; undefined when none does. */
export interface ModelCatalog {
  providerOf(model: string): ModelProvider | undefined;
}
