import { describe, expect, it } from "vitest";
import { doorWorld, pureTool, scriptedModel } from "../../../e2e/support/door.ts";
import { sessionUidOf } from "../../base/index.ts";
import type { ModelChunk } from "../../spi/index.ts";
import type { DoorClient } from "../../testing/door-client.ts";
import { TestModel, textResponse } from "../../testing/host.ts";

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function started(client: DoorClient): Promise<DoorClient> {
  client.say({ case: "start", value: { tools: [pureTool("look")] } });
  await client.next("sessionStarted");
  return client;
}

describe("a stream", () => {
  it("that is idle has no timer", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel({ text: "a" }) });
    await using host = at.host();
    const client = await started(host.client());
    expect(at.ports.clock.pending).toBe(0);
    client.say({ case: "userMessage", value: { content: "hi" } });
    await client.next("turnComplete");
    await client.next("activityUpdate", ({ state }) => state === "idle");
    await client.next("presenceHint", ({ level }) => level === "hidden");
    // What is left is the heartbeat of the turns that run, which stops by itself when there are none.
    at.ports.clock.advance(15_000);
    await tick();
    expect(at.ports.clock.pending).toBe(0);
    const back = host.client({ session: client.session });
    await back.next("presenceHint");
    expect(at.ports.clock.pending).toBe(0);
  });

  it("is kept alive while a turn runs, with what its context takes and may take", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel({ calls: [["look", "c1", {}]] }) });
    await using host = at.host();
    const client = await started(host.client());
    at.ports.clock.advance(60_000);
    expect(client.all("keepalive")).toEqual([]);
    client.say({ case: "userMessage", value: { content: "hi" } });
    await client.next("toolRequest");
    at.ports.clock.advance(14_999);
    await tick();
    expect(client.all("keepalive")).toEqual([]);
    at.ports.clock.advance(1);
    expect(await client.next("keepalive")).toMatchObject({ tokensUsed: 15, tokensMax: 100_000 });
    at.ports.clock.advance(15_000);
    await client.next("keepalive");
    client.say({ case: "toolResult", value: { toolCallId: "c1", success: true } });
    await client.next("turnComplete");
    await tick();
    at.ports.clock.advance(60_000);
    await tick();
    expect(client.all("keepalive")).toHaveLength(2);
  });

  it("whose reader stalls keeps little for it, holds up nobody, and tells all of it later", async () => {
    const chunks = 20_000;
    const model = new TestModel(async function* (): AsyncGenerator<ModelChunk, void, undefined> {
      for (let index = 0; index < chunks; index++) {
        yield { kind: "text", partIndex: 0, text: "word " };
        if (index % 500 === 0) await tick();
      }
      yield { kind: "completed", response: textResponse("word ".repeat(chunks)), facts: {} };
    });
    await using at = await doorWorld("memory", { models: model });
    await using host = at.host();
    const gate = Promise.withResolvers<void>();
    let isStalled = false;
    const slow = await started(
      host.client({ onResponse: ({ response }) => (isStalled && response.response.case === "textDelta" ? gate.promise : undefined) }),
    );
    isStalled = true;
    slow.say({ case: "userMessage", value: { content: "go", messageId: "m1" } });
    const quick = await started(host.client());
    quick.say({ case: "userMessage", value: { content: "go", messageId: "q1" } });
    await quick.next("turnComplete");
    expect(quick.text).toBe("word ".repeat(chunks));
    await host.host.controller.running(sessionUidOf(slow.session))?.outcome;
    expect(slow.all("textDelta")).toHaveLength(1);
    gate.resolve();
    await slow.next("turnComplete");
    expect(slow.text).toBe("word ".repeat(chunks));
    // It was told so much the more at once.
    expect(slow.heard.length).toBeLessThan(100);
  });

  it("whose reader stalls is read no further than so many answers wait", async () => {
    await using at = await doorWorld("memory", { limits: { responsesWaitingMax: 8 } });
    await using host = at.host();
    const gate = Promise.withResolvers<void>();
    let isStalled = false;
    const client = await started(host.client({ onResponse: () => (isStalled ? gate.promise : undefined) }));
    isStalled = true;
    for (let count = 0; count < 1_000; count++) client.say({ case: "ping", value: {} });
    for (let turns = 0; turns < 50; turns++) await tick();
    expect(client.unread).toBeGreaterThan(980);
    gate.resolve();
    for (let count = 0; count < 1_000; count++) await client.next("pong");
    expect(client.unread).toBe(0);
  });

  it("more than this host takes is refused, to be tried again", async () => {
    await using at = await doorWorld("memory", { limits: { streamsMax: 1 } });
    await using host = at.host();
    const first = await started(host.client());
    const second = host.client();
    second.say({ case: "start", value: {} });
    await second.ended();
    expect(second.all("error")).toMatchObject([{ code: "internal", retryable: true, message: expect.stringMatching(/as many streams/) }]);
    await first.cut();
    await started(host.client());
  });
});
