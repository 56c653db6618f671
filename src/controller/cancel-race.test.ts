import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { DyingStore, seededPorts, testHarness, TestHost } from "../testing/index.ts";

/** A host whose harness throws at once, and whose ERROR takes until `arrive` is called. */
function setup() {
  const ports = seededPorts();
  const sound = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  let arrive: () => void = () => undefined;
  const slow = new Promise<void>((resolve) => (arrive = resolve));
  const throws = testHarness(async () => {
    throw new Error("at once");
  });
  let appends = 0;
  const view = new DyingStore(sound, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view();
  const journal: JournalStore = {
    ...view,
    append: async (...call) => {
      appends += 1;
      if (appends === 2) await slow;
      return view.append(...call);
    },
  };
  const host = new TestHost({ journal, ports, harnesses: { test: throws } });
  return { host, arrive };
}

describe("a turn that its harness leaves while it is cancelled", () => {
  it("is cancelled nevertheless: the caller is not told of the harness's error", async () => {
    const { host, arrive } = setup();
    await using _ = host;
    const session = await host.createSession();
    await host.begin(session, []);
    const cancelled = host.controller.cancel({ session, executionId: "", reason: "USER" });
    arrive();
    expect((await cancelled).projection).toMatchObject({ openTurn: undefined, lastEnd: "CANCELED" });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "ERROR 13", "LIFECYCLE 5 USER", "END CANCELED"]);
  });

  it("is deleted with its session", async () => {
    const { host, arrive } = setup();
    await using _ = host;
    const session = await host.createSession();
    await host.begin(session, []);
    const deleted = host.controller.delete(session, undefined);
    arrive();
    await deleted;
    expect((await host.story(session)).slice(-3)).toEqual(["LIFECYCLE 5 USER", "END CANCELED", "LIFECYCLE 6"]);
  });
});
