import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { UsageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ModelFactsSchema } from "../../gen/holdfast/v1/beside_pb.ts";
import { TurnUsage, uint32 } from "./turn-usage.ts";

describe("what a turn has used", () => {
  const facts = (init: object) => create(ModelFactsSchema, init);
  const usage = (inputTokens: bigint, outputTokens: bigint) => create(UsageSchema, { inputTokens, outputTokens });

  it("is what providers said of completions, each once, and what a harness reports of anything else", () => {
    const used = new TurnUsage();
    used.asked();
    used.completed(facts({ inputTokens: 10n, outputTokens: 2n, cachedInputTokens: 7n, cacheWriteTokens: 1n }));
    used.reported(usage(10n, 2n));
    used.reported(usage(100n, 0n));
    used.asked();
    used.completed(facts({}));
    used.reported(usage(20n, 3n));
    expect(used.sums).toMatchObject({ inputTokens: 130, outputTokens: 5, cacheReadTokens: 7, cacheCreationTokens: 1 });
    expect(used.contextTokens).toBe(23);
  });

  it("is at most what the wire can say", () => {
    expect([uint32(-1), uint32(1.9), uint32(5e9)]).toEqual([0, 1, 4_294_967_295]);
    const used = new TurnUsage();
    used.reported(usage(9_000_000_000n, 1n));
    expect(used.sums.inputTokens).toBe(4_294_967_295);
  });
});
