import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { seededPorts, silent, testHarness, TestHost, TestModel } from "../testing/index.ts";

describe("cancelling at a host that runs an earlier turn still, without knowing that it was superseded", () => {
  it("reaches the turn that is open, and does not give up", async () => {
    const ports = seededPorts();
    const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    const asks = testHarness(async (start, sink) => void (await sink.model({ model: "test", messages: start.inputs })));
    const newHost = (hostId: string) => new TestHost({ journal, ports, harnesses: { test: asks }, models: new TestModel(silent), hostId });
    await using first = newHost("first");
    await using second = newHost("second");
    const session = await first.createSession();
    const superseded = await first.begin(session, []);
    await second.controller.cancel({ session, executionId: "", reason: "USER" });
    const open = await second.begin(session, []);
    expect(first.controller.running(session)).toBe(superseded);
    const row = await first.controller.cancel({ session, executionId: open.executionId, reason: "USER" });
    expect(row.projection).toMatchObject({ openTurn: undefined, lastEnd: "CANCELED" });
    ports.clock.advance(5_000);
    expect(await open.outcome).toMatchObject({ kind: "interrupted", error: { code: "aborted" } });
  });
});
