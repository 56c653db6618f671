import { describe, expect, it } from "vitest";
import { doorWorld } from "../../../e2e/support/door.ts";
import type { JournalStore } from "../../journal/index.ts";
import type { DoorHost } from "../../testing/door-world.ts";
import type { DoorClient } from "../../testing/door-client.ts";
import { DyingStore } from "../../testing/dying-store.ts";

/** A journal that counts who watches it. */
function counted(journal: JournalStore): { readonly journal: JournalStore; readonly watches: { now: number } } {
  const watches = { now: 0 };
  const view = new DyingStore(journal, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view();
  const watch: JournalStore["watch"] = (session, listener) => {
    const unwatch = journal.watch(session, listener);
    watches.now += 1;
    return () => {
      watches.now -= 1;
      unwatch();
    };
  };
  return { journal: { ...view, watch }, watches };
}

describe("a stream that has ended", () => {
  it.each<[string, (client: DoorClient, host: DoorHost) => Promise<void> | void]>([
    ["because its client said nothing more", (client) => client.finish()],
    ["because its session was cancelled", (client) => client.say({ case: "cancelSession", value: {} })],
    ["because its line was cut", (client) => client.cut()],
    [
      "because another has taken its session over",
      async (client, host) => {
        const newer = host.client({ session: client.session });
        await newer.next("sessionStarted");
        await newer.cut();
      },
    ],
  ])("watches its session no more: %s", async (_, end) => {
    await using at = await doorWorld();
    const { journal, watches } = counted(at.journal);
    await using host = at.host({ journal });
    const client = host.client();
    client.say({ case: "start", value: {} });
    await client.next("sessionStarted");
    await expect.poll(() => watches.now).toBe(1);
    await end(client, host);
    await client.ended();
    await expect.poll(() => watches.now).toBe(0);
  });
});
