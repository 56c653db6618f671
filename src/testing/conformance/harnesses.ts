/** Harnesses that give a host every ability that the suite can use. */

import { HarnessFailure, type Harness } from "../../spi/index.ts";
import { testHarness } from "../host.ts";
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
  };
}

/** The abilities of a host with `conformanceHarnesses`. */
export const CONFORMANCE_ABILITIES: Abilities = {
  harness: "plain",
  waitingHarness: "waiting",
  failingHarness: "failing",
  flakyHarness: "flaky",
};

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    if (signal.aborted) reject(signal.reason as Error);
  });
}
