import { describe, expect, it } from "vitest";
import { describeHarness, messageText, Resumability, textMessage } from "./index.ts";

describe("the SPI's small makers", () => {
  it("describe a harness with safe defaults, or as it says", () => {
    expect(describeHarness({ id: "a", version: "1" })).toMatchObject({
      tools: [],
      capabilities: { resumability: Resumability.STATELESS_REPLAY, forkSafe: true },
    });
    const capabilities = { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT } as const;
    expect(describeHarness({ id: "a", version: "1", capabilities })).toMatchObject({ capabilities: { forkSafe: false } });
  });

  it("make a text message and read it back", () => {
    expect(messageText(textMessage("user", "hello"))).toBe("hello");
  });
});
