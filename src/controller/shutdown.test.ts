import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { DyingStore, seededPorts, testHarness, TestHost } from "../testing/index.ts";

describe("shutting a host down while a turn's start is on its way to the journal", () => {
  it("waits for it and interrupts the turn: another host can take it up at once", async () => {
    const ports = seededPorts();
    const sound = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    let arrive: () => void = () => undefined;
    let asked: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => (arrive = resolve));
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    const view = new DyingStore(sound, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view();
    const journal: JournalStore = {
      ...view,
      append: async (...call) => {
        asked();
        await slow;
        return view.append(...call);
      },
    };
    const stays = testHarness(
      async (_, __, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
    );
    const host = new TestHost({ journal, ports, harnesses: { test: stays } });
    const session = await host.createSession();
    const begun = host.begin(session, []);
    await isAsked;
    const down = host.controller.shutdown({ graceMs: 0 });
    arrive();
    await down;
    expect(await (await begun).outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" } });
    const row = await sound.get(session);
    expect(row?.projection.openTurn).toBeDefined();
    expect(row?.holder).toBeUndefined();
  });
});
