/** Accounting after a model call. */

import type { EventSink, ModelResponse } from "../spi/index.ts";

/**
 * Records the usage that came with a completion. A usage of nothing is not recorded: journals of other writers have completions
 * without one, which replay with zero, and a record that they do not have would make the replay differ.
 */
export function recordUsage(sink: EventSink, response: ModelResponse, signal: AbortSignal): Promise<void> {
  const { inputTokens, outputTokens, reasoningTokens } = response.usage;
  if (inputTokens === 0n && outputTokens === 0n && reasoningTokens === 0n) return Promise.resolve();
  return sink.usage(response.usage, { signal });
}
