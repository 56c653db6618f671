import { describe, expect, it } from "vitest";
import { createCounterHarness } from "../../harnesses/counter.ts";
import { describeHarness, type Harness } from "../../spi/index.ts";
import { runtimeCases, type RuntimeUnderTest } from "../../testing/runtime-conformance/index.ts";
import { createLocalRuntime } from "./index.ts";

/** The counter, which is one for all sessions here and says of itself that it keeps nothing. */
function counter(): Harness {
  const { run } = createCounterHarness();
  return { describe: async () => describeHarness({ id: "counter", version: "1" }), run: (...turn) => run(...turn) };
}

async function open(): Promise<RuntimeUnderTest> {
  const runtime = createLocalRuntime({ harness: counter() });
  return { runtime, sandboxed: false, [Symbol.asyncDispose]: () => runtime[Symbol.asyncDispose]() };
}

describe("the local runtime is a runtime", () => {
  it.each([...runtimeCases(open)])("$name", ({ run }) => run());

  it("captures nothing, and says so", () => {
    expect(createLocalRuntime({ harness: counter() }).capabilities()).toMatchObject({ memorySnapshot: false, cowFork: false });
  });
});
