/** Harnesses that give a host every ability that the suite can use. */

import { HoldfastError } from "../../base/index.ts";
import { HarnessFailure, type Harness, type ToolExecutor } from "../../spi/index.ts";
import { testHarness } from "../host.ts";
import { gatedCall, TestTools, toolCall } from "../tools.ts";
import type { Abilities } from "./contract.ts";

/** Harnesses by the names that `CONFORMANCE_ABILITIES` gives; `plain` comes first, for hosts whose first one is the default. */
export function conformanceHarnesses(): Readonly<Record<string, Harness>> {
  const thrown = new Set<string>();
  return {
    plain: testHarness(async (start, sink, { signal }) => {
      const { usage } = await sink.model({ model: start.model || "echo", messages: start.inputs }, { signal });
      await sink.usage(usage);
    }),
    waiting: testHarness((_start, _sink, { signal }) => untilAborted(signal)),
    failing: testHarness(async (_start, sink) => {
      await sink.output("so far");
      throw new HarnessFailure(9, "it cannot be done");
    }),
    flaky: testHarness(async (start, sink, { signal }) => {
      await sink.model({ model: start.model || "echo", messages: start.inputs }, { signal });
      if (!thrown.has(start.executionId)) {
        thrown.add(start.executionId);
        throw new Error("the first run throws");
      }
    }),
    acting: testHarness(async (start, sink) => {
      for (const tool of ["say", "break"]) await sink.toolCall(toolCall(tool, tool, { idempotencyKey: `${start.executionId}-${tool}` }));
      await sink.output("done");
    }),
    asking: testHarness(async (start, sink) => {
      const result = await sink.toolCall(gatedCall("say", "ask", { idempotencyKey: `${start.executionId}-ask`, args: { what: [1, "x"] } }));
      await sink.output(result.isError ? result.error : "done");
    }),
    "asking-thrice": testHarness(async (start, sink) => {
      const calls = ["a", "b", "c"].map((id) => sink.toolCall(gatedCall("say", id, { idempotencyKey: `${start.executionId}-${id}` })));
      await Promise.all(calls);
    }),
  };
}

/** The tools that some of them call. */
export function conformanceTools(): ToolExecutor {
  return new TestTools({
    say: async (call) => ({ output: { said: call.id } }),
    break: async () => {
      throw new HoldfastError("unavailable", "tool: it is broken");
    },
  });
}

/** The abilities of a host with `conformanceHarnesses`. */
export const CONFORMANCE_ABILITIES: Abilities = {
  harness: "plain",
  waitingHarness: "waiting",
  failingHarness: "failing",
  flakyHarness: "flaky",
  toolHarness: "acting",
  approvalHarness: "asking",
  parallelApprovalHarness: "asking-thrice",
};

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    if (signal.aborted) reject(signal.reason as Error);
  });
}
