import { describe, expect, it } from "vitest";
import { journalStoreCases, storeUnderTest } from "../../testing/journal-conformance/index.ts";
import { append, created, output, uid } from "../../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../../testing/ports.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { openSqliteStore } from "./index.ts";

describe("the SQLite store", () => {
  it("lets the event loop turn between the pages of a long read, and not after the last", async () => {
    using folder = new TemporaryFolder();
    await using store = await openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });
    await created(store, "a");
    await append(store, "a", ...Array.from({ length: 30 }, () => output("x")));
    let turns = 0;
    const turn = () => {
      turns++;
      pending = setImmediate(turn);
    };
    let pending = setImmediate(turn);
    for await (const page of store.read({ session: uid("a"), pageRecordsMax: 10 })) expect(page.length).toBe(10);
    clearImmediate(pending);
    expect(turns).toBe(2);
  });
});

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
