/**
 * What a turn has used, for its client: a completion counts by what its provider said of it, and usage that a harness reports of something else
 * counts as well. Pure.
 */

import { create } from "@bufbuild/protobuf";
import type { ModelFacts } from "../../gen/holdfast/v1/beside_pb.ts";
import { TokenUsageSchema, type TokenUsage } from "../../gen/roz/v1/agent_pb.ts";
import type { Usage } from "../../spi/index.ts";

export class TurnUsage {
  #inputTokens = 0;
  #outputTokens = 0;
  #cacheReadTokens = 0;
  #cacheWriteTokens = 0;
  #contextTokens: number | undefined;
  /** The next usage is that of a completion which was counted. */
  #isCounted = false;

  /** The tokens of the last request and its completion: what the context takes; undefined before the first. */
  get contextTokens(): number | undefined {
    return this.#contextTokens;
  }

  /** A model was asked. */
  asked(): void {
    this.#isCounted = false;
  }

  completed(facts: ModelFacts | undefined): void {
    if (facts === undefined) return;
    this.#cacheReadTokens += Number(facts.cachedInputTokens ?? 0n);
    this.#cacheWriteTokens += Number(facts.cacheWriteTokens ?? 0n);
    if (facts.inputTokens === undefined && facts.outputTokens === undefined) return;
    this.#isCounted = true;
    this.#add(facts.inputTokens ?? 0n, facts.outputTokens ?? 0n);
  }

  reported({ inputTokens, outputTokens }: Usage): void {
    if (!this.#isCounted) this.#add(inputTokens, outputTokens);
    this.#isCounted = false;
  }

  /** The sums as the wire has them. */
  get sums(): TokenUsage {
    return create(TokenUsageSchema, {
      inputTokens: uint32(this.#inputTokens),
      outputTokens: uint32(this.#outputTokens),
      cacheReadTokens: uint32(this.#cacheReadTokens),
      cacheCreationTokens: uint32(this.#cacheWriteTokens),
    });
  }

  #add(inputTokens: bigint, outputTokens: bigint): void {
    this.#inputTokens += Number(inputTokens);
    this.#outputTokens += Number(outputTokens);
    this.#contextTokens = Number(inputTokens + outputTokens);
  }
}

/** A count as the wire can say it. */
export function uint32(count: number): number {
  return Math.min(Math.max(0, Math.trunc(count)), 0xffff_ffff);
}
