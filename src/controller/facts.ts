/** What is kept beside a turn's records, as the host is told it. */

import { create, toBinary } from "@bufbuild/protobuf";
import { encodeModelFacts } from "../canon/index.ts";
import { CompactionFactsSchema } from "../gen/holdfast/v1/beside_pb.ts";
import type { Compaction, ModelFacts, Usage } from "../spi/index.ts";

/** What is kept beside the OUTPUT of a completion. */
export function encodedFacts(facts: ModelFacts, { inputTokens, outputTokens }: Usage): Uint8Array {
  const { stopReason = "", attempts = 0, model = "", provider = "", latencyMs } = facts;
  return encodeModelFacts({
    stopReason,
    cachedInputTokens: bigintOf(facts.cachedInputTokens),
    cacheWriteTokens: bigintOf(facts.cacheWriteTokens),
    latencyMs: latencyMs === undefined ? undefined : BigInt(Math.max(0, Math.round(latencyMs))),
    attempts,
    model,
    provider,
    costNanoDollars: bigintOf(facts.costNanoDollars),
    inputTokens,
    outputTokens,
  });
}

function bigintOf(count: number | undefined): bigint | undefined {
  return count === undefined ? undefined : BigInt(count);
}

/** What is kept beside a baseline. */
export function encodedCompaction({ level, messagesBefore, messagesAfter, tokensBefore, tokensAfter }: Compaction): Uint8Array {
  const counts = { messagesBefore, messagesAfter, tokensBefore, tokensAfter };
  const value = Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, BigInt(Math.max(0, Math.round(count)))]));
  return toBinary(CompactionFactsSchema, create(CompactionFactsSchema, { level, ...value }));
}
