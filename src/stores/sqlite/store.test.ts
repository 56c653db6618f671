import { describe, expect, it } from "vitest";
import { journalStoreCases, storeUnderTest } from "../../testing/journal-conformance/index.ts";
import { testDigest } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { openSqliteStore } from "./index.ts";

describe.each(["inline", "worker"] as const)("the SQLite store, written %s", (writer) => {
  const open = () => {
    const folder = new TemporaryFolder();
    return storeUnderTest((clock) => openSqliteStore({ folder: folder.path, clock, digest: testDigest, writer }), {
      survives: true,
      cleanUp: () => folder[Symbol.dispose](),
    });
  };
  it.each(journalStoreCases(open))("$name", async ({ run }) => {
    await expect(run()).resolves.toBeUndefined();
  });
});
