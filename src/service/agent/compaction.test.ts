import { describe, expect, it } from "vitest";
import { doorWorld, environmentWith, pureTool } from "../../../e2e/support/door.ts";
import { messageText } from "../../spi/index.ts";
import { sayingModel } from "../../testing/agent-world.ts";
import type { DoorClient } from "../../testing/door-client.ts";

/** Says something and waits for the end of the turn. */
async function turn(client: DoorClient, content: string): Promise<void> {
  client.say({ case: "userMessage", value: { content, messageId: content.slice(0, 2) } });
  await client.next("turnComplete");
}

describe("a context that has grown too large", () => {
  it("is made smaller, which the client is told with counts; the summary is no text of the answer", async () => {
    const model = sayingModel(({ messages }) =>
      messageText(messages[0]!).startsWith("You keep the notes") ? { text: "They spoke of doors." } : { text: "y".repeat(600) },
    );
    await using at = await doorWorld("memory", { models: model, environments: [environmentWith({ maxContextTokens: 1_000 })] });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    for (const id of ["m1", "m2", "m3", "m4", "m5"]) await turn(client, `${id} ${"x".repeat(600)}`);
    const [compacted] = client.all("contextCompacted");
    expect(compacted).toMatchObject({ level: "summary", summary: "They spoke of doors." });
    expect(compacted!.messagesAfter).toBeLessThan(compacted!.messagesBefore);
    expect(compacted!.tokensBefore).toBeGreaterThan(1_000);
    expect(compacted!.tokensAfter).toBeLessThan(1_000);
    expect(client.text).not.toContain("They spoke");
    expect(client.text).toBe("y".repeat(3_000));
    const told = client.story().slice(1);
    const again = host.client({ session: client.session, fromSeq: 0 });
    await again.next("activityUpdate");
    expect(again.story().slice(1)).toEqual(told);
    expect(await at.checks(client.session)).toEqual(["same", "same", "same", "same", "same"]);
  });

  it("loses its tools' results first", async () => {
    const asked = sayingModel((_, index) => (index < 6 ? { calls: [["look", `c${index}`, {}]] } : { text: "done" }));
    await using at = await doorWorld("memory", { models: asked, environments: [environmentWith({ maxContextTokens: 1_000 })] });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look")] } });
    client.say({ case: "userMessage", value: { content: "look around", messageId: "m1" } });
    for (let count = 0; count < 6; count++) {
      const { toolCallId } = await client.next("toolRequest");
      client.say({ case: "toolResult", value: { toolCallId, success: true, result: "z".repeat(900) } });
    }
    await client.next("turnComplete");
    const [compacted] = client.all("contextCompacted");
    expect(compacted).toMatchObject({ level: "tool_results", messagesBefore: 7, messagesAfter: 7 });
    expect(compacted!.summary).toBeUndefined();
    expect(compacted!.tokensAfter).toBeLessThan(compacted!.tokensBefore);
  });
});
