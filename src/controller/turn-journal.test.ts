import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { DyingStore, seededPorts, testHarness, TestHost } from "../testing/index.ts";

describe("the pen of a turn that can write no more", () => {
  it("says so to a harness that only ever puts out text: it does not go on for ever", async () => {
    const ports = seededPorts();
    const sound = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    let outputs = 0;
    const talker = testHarness(async (_, sink) => {
      for (;;) {
        await sink.output("more");
        outputs += 1;
      }
    });
    const dying = new DyingStore(sound, { atAppend: 5, when: "before" });
    const host = new TestHost({ journal: dying.view(), ports, harnesses: { test: talker }, limits: { turnRecordsMax: 1_000_000 } });
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    expect(await turn.outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" } });
    expect(outputs).toBeLessThan(200);
  });
});
