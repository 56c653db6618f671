/** A harness whose turn needs approvals: as many gated calls at once as its config says, then a word on each. */

import { defineHarness, Mediation, serveHarness } from "../../src/harness-sdk/node/index.ts";

export const gated = defineHarness({
  id: "gated",
  version: "1",
  tools: [{ name: "act", mediation: Mediation.REQUIRES_APPROVAL }],
  run: async (start, sink) => {
    const { calls, fails } = JSON.parse(new TextDecoder().decode(start.config)) as { calls: number; fails: boolean };
    const numbers = Array.from({ length: calls }, (_, index) => index + 1);
    const results = await Promise.all(numbers.map((number) => sink.toolCall({ tool: "act", args: { number, fails } })));
    for (const [index, result] of results.entries()) await sink.output(`${index + 1} ${result.isError ? `failed ${result.code}` : "done"}`);
  },
});

if (process.env["HOLDFAST_HARNESS_LISTEN"] !== undefined) await serveHarness(gated);
