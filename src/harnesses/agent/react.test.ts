import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { AgentWorld, agentConfig, sayingModel, TestTools, type Saying } from "../../testing/index.ts";
import { createAgentHarness } from "./index.ts";

const CONFIG = { mode: "react", tools: { free: ["*"], pure: ["look*"] } };

/** An agent whose model says one thing after the other; `meet` is awaited by both of its pure tools. */
function world(sayings: readonly Saying[], meet: () => Promise<void> = async () => undefined) {
  const look = async () => {
    await meet();
    return { output: { seen: true } };
  };
  return new AgentWorld({
    openJournal: ({ clock, digest }) => createMemoryStore({ clock, digest }),
    agent: createAgentHarness(),
    model: sayingModel((_, index) => sayings[index] ?? { text: "done" }),
    tools: new TestTools({ look, look_up: look, move: async () => ({ output: { moved: true } }) }),
  });
}

describe("an agent in mode react", () => {
  it("offers pure tools, and tells a model that calls a physical one where that belongs", async () => {
    const at = world([
      {
        calls: [
          ["move", "m", {}],
          ["look", "l", {}],
          ["fly", "f", {}],
        ],
      },
    ]);
    await using host = at.host();
    const session = await host.createSession();
    expect(await (await host.begin(session, ["go"], { config: agentConfig(CONFIG) })).outcome).toMatchObject({ state: "COMPLETED" });
    expect(at.model.requests[0]!.tools!.map(({ name }) => name)).toEqual(["look", "look_up"]);
    expect((at.tools as TestTools).ran).toEqual(["l"]);
    expect(at.model.requests[1]!.messages.at(-1)!.parts.map(({ part }) => part.case === "toolResult" && part.value.error)).toEqual([
      "this is a physical tool, which belongs to the mode ooda_re_act; nothing was run",
      "",
      "there is no tool of this name, so nothing was run; there are: look, look_up",
    ]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("runs pure tools of one message at once", async () => {
    const both = Promise.withResolvers<void>();
    let there = 0;
    const at = world(
      [
        {
          calls: [
            ["look", "a", {}],
            ["look_up", "b", {}],
          ],
        },
      ],
      () => {
        there += 1;
        if (there === 2) both.resolve();
        return both.promise;
      },
    );
    await using host = at.host();
    const session = await host.createSession();
    expect(await (await host.begin(session, ["go"], { config: agentConfig(CONFIG) })).outcome).toMatchObject({ state: "COMPLETED" });
    expect(there).toBe(2);
  });
});
