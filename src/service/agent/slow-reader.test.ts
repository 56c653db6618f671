import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { doorWorld, scriptedModel } from "../../../e2e/support/door.ts";
import { seqOf, sessionUidOf } from "../../base/ids.ts";
import { TextDeltaSchema } from "../../gen/roz/v1/agent_pb.ts";
import { Outbox } from "./outbox.ts";
import type { Told } from "./transcript.ts";

const delta = (chars: number): Told => ({
  said: { case: "textDelta", value: create(TextDeltaSchema, { content: "x".repeat(chars) }) },
  seq: seqOf(1, "seq"),
});

describe("what waits for a reader", () => {
  it("is bounded in characters as well as in number: whoever makes more waits", async () => {
    const outbox = new Outbox(8, 100);
    outbox.put([delta(60), delta(40), delta(1)]);
    expect(outbox.hasRoom).toBe(false);
    let isRoom = false;
    const room = outbox.room().then(() => (isRoom = true));
    const leaving = outbox.leaving();
    await leaving.next();
    await room;
    expect([isRoom, outbox.hasRoom]).toEqual([true, true]);
  });

  it("is nothing any more once the reader is gone", () => {
    const outbox = new Outbox(8, 100);
    outbox.put([delta(100)]);
    outbox.close();
    expect(outbox.hasRoom).toBe(true);
  });
});

describe("a reader that is slow", () => {
  const text = "0123456789".repeat(50);

  it("is told everything when it reads, in deltas of a bounded size, and its turn has not waited for it", async () => {
    const pieces = Array.from({ length: 10 }, (_, index) => text.slice(index * 50, (index + 1) * 50));
    const limits = { deltaCharsMax: 16, charsWaitingMax: 32 };
    await using at = await doorWorld("memory", { models: scriptedModel({ pieces }), limits });
    await using host = at.host();
    const reads = Promise.withResolvers<void>();
    const client = host.client({ onResponse: ({ response }) => (response.response.case === "textDelta" ? reads.promise : undefined) });
    client.say({ case: "start", value: {} });
    client.say({ case: "userMessage", value: { content: "hi", messageId: "m" } });
    await client.next("textDelta");
    await expect.poll(async () => (await host.host.story(sessionUidOf(client.session))).at(-1)).toBe("END COMPLETED");
    expect(client.text.length).toBeLessThan(text.length);
    reads.resolve();
    await client.next("turnComplete");
    expect(client.text).toBe(text);
    expect(Math.max(...client.all("textDelta").map(({ content }) => content.length))).toBe(16);
  });
});
