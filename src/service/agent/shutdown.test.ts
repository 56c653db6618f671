import { describe, expect, it } from "vitest";
import { doorWorld, pureTool, scriptedModel } from "../../../e2e/support/door.ts";

/** So long that a test that has to wait for it fails. */
const GRACE_MS = 3_600_000;

describe("a host that shuts down while a turn waits for a tool of its client's", () => {
  it("does not wait for a client that is gone: the next host gives it its request", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel({ calls: [["look", "c1", {}]] }, { text: "seen" }) });
    const host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say({ case: "userMessage", value: { content: "look", messageId: "m1" } });
    await client.next("toolRequest");
    const { session } = client;
    const down = host.host.controller.shutdown({
      graceMs: GRACE_MS,
      untilClientIsMissed: (of, signal) => host.door.untilClientIsMissed(of, signal),
    });
    await client.cut();
    await down;
    await host[Symbol.asyncDispose]();

    await using next = at.host();
    const back = next.client({ session });
    const { toolCallId } = await back.next("toolRequest");
    back.say({ case: "toolResult", value: { toolCallId, success: true, result: "a door" } });
    expect(await back.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "end_turn" });
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("gives a client that is there its time to answer", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel({ calls: [["look", "c1", {}]] }, { text: "seen" }) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say({ case: "userMessage", value: { content: "look", messageId: "m1" } });
    const { toolCallId } = await client.next("toolRequest");
    const down = host.host.controller.shutdown({
      graceMs: GRACE_MS,
      untilClientIsMissed: (of, signal) => host.door.untilClientIsMissed(of, signal),
    });
    client.say({ case: "toolResult", value: { toolCallId, success: true, result: "a door" } });
    expect(await client.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "end_turn" });
    await down;
  });
});
