import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { DyingStore, seededPorts, testHarness, TestHost, TestModel } from "../testing/index.ts";
import { resumeInterrupted } from "./index.ts";

describe("starting a host", () => {
  it("resumes every interrupted turn, and leaves alone what failed, what ended and what somebody runs", async () => {
    const ports = seededPorts();
    const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    const harnesses = {
      test: testHarness(async (start, sink) => {
        await sink.model({ model: "test", messages: start.inputs });
      }),
      broken: testHarness(async () => {
        throw new Error("always");
      }),
    };
    const models = new TestModel();
    const interrupted = [];
    for (let index = 0; index < 250; index++) {
      const dying = new DyingStore(journal, { atAppend: 2, when: "after" });
      const host = new TestHost({ journal: dying.view(), ports, harnesses, models, hostId: `dead-${index}` });
      const session = await host.createSession();
      interrupted.push(session);
      await (
        await host.begin(session, ["go"])
      ).outcome;
    }
    ports.clock.advance(60_000);
    await using host = new TestHost({ journal, ports, harnesses, models, hostId: "new" });
    const [failed, gone, ended] = [
      await host.createSession({ harness: "broken" }),
      await host.createSession({ harness: "test" }),
      await host.createSession(),
    ];
    await (
      await host.begin(failed, [])
    ).outcome;
    await (
      await host.begin(ended, [])
    ).outcome;
    const dying = new DyingStore(journal, { atAppend: 2, when: "after" });
    const dead = new TestHost({ journal: dying.view(), ports, harnesses, models, hostId: "dead" });
    await (
      await dead.begin(gone, [])
    ).outcome;
    await using without = new TestHost({ journal, ports, harnesses: { broken: harnesses.broken }, hostId: "without" });
    ports.clock.advance(60_000);
    const { controller } = host;
    const options = { journal, controller, log: SILENT_LOG, signal: new AbortController().signal, concurrencyMax: 8 };
    expect(await resumeInterrupted({ ...options, controller: without.controller })).toEqual({ resumed: 0, refused: 251, left: 1 });
    expect(await resumeInterrupted(options)).toEqual({ resumed: 251, refused: 0, left: 1 });
    expect(await resumeInterrupted(options)).toEqual({ resumed: 0, refused: 0, left: 1 });
    for (const session of interrupted) expect((await host.story(session)).at(-1)).toBe("END COMPLETED");
    expect(await host.story(failed)).toEqual(["EXECUTION_START", "ERROR 13"]);
  });
});
