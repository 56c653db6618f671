import { describe, expect, it } from "vitest";
import { spawnArguments, spawnDefinition, spawnFault } from "./spawn-arguments.ts";

const AGENTS = ["scout", "clerk"];

describe("the tool spawn", () => {
  it("tells a model which agents there are, and that it must choose where there are several", () => {
    const { name, inputSchema } = spawnDefinition(AGENTS);
    expect(name).toBe("spawn");
    expect(inputSchema).toMatchObject({
      type: "object",
      properties: { agent: { enum: AGENTS }, prompt: { type: "string" }, name: { type: "string" } },
      required: ["agent", "prompt"],
      additionalProperties: false,
    });
    expect(spawnDefinition(["scout"]).inputSchema).toMatchObject({ properties: { agent: { enum: ["scout"] } }, required: ["prompt"] });
  });

  it("takes the one agent where none is named", () => {
    expect(spawnFault({ prompt: "look" }, ["scout"])).toBeUndefined();
    expect(spawnArguments({ prompt: "look" }, ["scout"])).toEqual({ agent: "scout", prompt: "look", name: "" });
    expect(spawnArguments({ agent: "clerk", prompt: "note", name: "n" }, AGENTS)).toEqual({ agent: "clerk", prompt: "note", name: "n" });
  });

  it.each([
    [{ prompt: "look" }, "agent must be one of scout, clerk"],
    [{ agent: "nobody", prompt: "look" }, "agent must be one of scout, clerk"],
    [{ agent: 1, prompt: "look" }, "agent must be one of scout, clerk"],
    [{ agent: "scout" }, "prompt must be a text that is not empty"],
    [{ agent: "scout", prompt: "" }, "prompt must be a text that is not empty"],
    [{ agent: "scout", prompt: ["look"] }, "prompt must be a text that is not empty"],
    [{ agent: "scout", prompt: "look", name: 5 }, "name must be a text"],
    [{ agent: "scout", prompt: "look", name: " n" }, "name: must not begin or end with white space"],
    [{ agent: "scout", prompt: "look", name: "n".repeat(129) }, "name: must have at most 128 characters"],
    [{ agent: "scout", prompt: "look", model: "m" }, "must have no other keys than agent, prompt, name"],
  ])("refuses %j", (args, fault) => {
    expect(spawnFault(args, AGENTS)).toBe(fault);
  });
});
