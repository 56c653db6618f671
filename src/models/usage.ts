/** Token counts as the contract holds them. */

import { create } from "@bufbuild/protobuf";
import { UsageSchema, type Usage } from "../gen/agentsessions/v1/common_pb.ts";
import { messageText, type ModelRequest } from "../spi/index.ts";

/** A provider's word for why it stopped, cut where it is no word any more. */
export function stopWord(reason: string): string {
  return reason.slice(0, 64).toWellFormed();
}

/** Counts of one completion. `inputTokens` has the cached ones in it, `outputTokens` the reasoning ones. */
export interface TokenCounts {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** The usage of a completion of `model`. */
export function usageOf(model: string, counts: TokenCounts): Usage {
  return create(UsageSchema, {
    model,
    inputTokens: BigInt(counts.inputTokens),
    outputTokens: BigInt(counts.outputTokens),
    reasoningTokens: BigInt(counts.reasoningTokens),
  });
}

/**
 * What a completion without a provider is said to cost: its words, a word being a run of characters that are not white space. Equal
 * requests cost the same on every host.
 */
export function wordCounts(request: ModelRequest, answer: string): TokenCounts {
  let inputTokens = 0;
  for (const message of request.messages) inputTokens += countWords(messageText(message));
  return { inputTokens, outputTokens: countWords(answer), reasoningTokens: 0 };
}

function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
