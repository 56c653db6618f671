import { describe, expect, it } from "vitest";
import { DOOR_STORES, doorWorld, pureTool, scriptedModel } from "../../../e2e/support/door.ts";
import { SILENT_LOG } from "../../base/index.ts";
import { resumeInterrupted } from "../../controller/index.ts";

/** More than are taken up at once. */
const WAITING = 5;

describe.each(DOOR_STORES)("a host over %s that resumes what an earlier one left open", (store) => {
  it("is not held up by turns whose clients are not there, and gives those their requests when they come back", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ calls: [["look", "c1", {}]] }, { text: "seen" }) });
    const sessions: string[] = [];
    {
      await using earlier = at.host();
      for (let index = 0; index < WAITING; index++) {
        const client = earlier.client();
        client.say({ case: "start", value: { tools: [pureTool("look")] } });
        client.say({ case: "userMessage", value: { content: "look", messageId: "m1" } });
        await client.next("toolRequest");
        sessions.push(client.session);
        await client.cut();
      }
    }
    await using host = at.host();
    const { controller } = host.host;
    const report = await resumeInterrupted({
      journal: at.journal,
      controller,
      log: SILENT_LOG,
      signal: new AbortController().signal,
      concurrencyMax: 2,
      untilClientIsMissed: (session, signal) => host.door.untilClientIsMissed(session, signal),
    });
    expect(report).toEqual({ resumed: 0, refused: 0, left: WAITING });
    for (const session of sessions) {
      const back = host.client({ session });
      const { toolCallId } = await back.next("toolRequest");
      back.say({ case: "toolResult", value: { toolCallId, success: true, result: "a door" } });
      expect(await back.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "end_turn" });
      expect(back.text).toBe("seen");
      expect(await at.checks(session)).toEqual(["same"]);
    }
  });
});
