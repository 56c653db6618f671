import { describe, expect, it } from "vitest";
import { ApprovalParkedError, HarnessFailure } from "../../spi/faults.ts";
import { PARK, ProbeSink, probeStart } from "../../testing/harness-wire/probe-host.ts";
import { defineHarness } from "../index.ts";
import { tellingThrows } from "./tell-throws.ts";

/** What is written of a run that throws `thrown`, which is passed on. */
async function toldOf(thrown: unknown, signal = new AbortController().signal): Promise<string> {
  let told = "";
  const run = async (): Promise<void> => {
    throw thrown;
  };
  const harness = tellingThrows(defineHarness({ id: "thrower", version: "1", run }), (text) => (told += text));
  await expect(harness.run(probeStart("nothing at all"), new ProbeSink(), { signal })).rejects.toBe(thrown);
  return told;
}

function raise(words: string): never {
  throw new Error(words);
}

describe("a run that throws", () => {
  it("has its stack written, with what caused it", async () => {
    const told = await toldOf(new TypeError("boom", { cause: new Error("the fuse") }));
    expect(told).toMatch(/^harness: a run threw; .*\nTypeError: boom\n +at [^]*\[cause\]: Error: the fuse\n/);
    expect(told).toContain("tell-throws.test.ts");
  });

  it("may throw anything, of any size", async () => {
    expect(await toldOf("just words")).toContain("'just words'");
    expect(await toldOf(undefined)).toContain("undefined");
    expect(await toldOf(new Error("boom", { cause: { status: 429 } }))).toContain("status: 429");
    const hostile = new Proxy(new Error("boom"), { getPrototypeOf: () => raise("a trap") });
    expect(await toldOf(hostile)).toContain("cannot be read");
    expect((await toldOf(new Error("x".repeat(1_000_000)))).length).toBeLessThan(20_000);
  });

  it("writes nothing of a failure that is journaled, of a park, and of a run that was told to stop", async () => {
    const park = new ApprovalParkedError(PARK);
    expect(await toldOf(new HarnessFailure(9, "it cannot be done"))).toBe("");
    expect(await toldOf(park)).toBe("");
    expect(await toldOf(new AggregateError([park, new Error("while paying", { cause: park })]))).toBe("");
    expect(await toldOf(new AggregateError([park, new Error("boom")]))).toContain("boom");
    expect(await toldOf(new Error("boom"), AbortSignal.abort())).toBe("");
  });
});
