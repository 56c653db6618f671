import { describe, expect, it } from "vitest";
import { journalStoreCases, storeUnderTest } from "../../testing/journal-conformance/index.ts";
import { testDigest } from "../../testing/ports.ts";
import { createMemoryStore } from "./index.ts";

describe("the memory store", () => {
  const open = () => storeUnderTest(async (clock) => createMemoryStore({ clock, digest: testDigest }), { survives: false });
  it.each(journalStoreCases(open))("$name", async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
