/** Token counts as the contract holds them. */

import { create } from "@bufbuild/protobuf";
import { UsageSchema, type Usage } from "../gen/agentsessions/v1/common_pb.ts";

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
