import { describe, expect, it } from "vitest";
import { testDigest } from "../../testing/ports.ts";
import { createDefinedAgent } from "./index.ts";
import { agentDigest, parseAgent } from "./definition.ts";

const WHOLE = {
  system_prompt: "Be brief.",
  model: "m",
  params: { temperature: 0.5, seed: 1, stream: true },
  tools: { free: ["fs_read", "web_*"], ask: ["*"] },
  max_steps: 7,
  context: { max_tokens: 2_000 },
};

const anything = () => () => undefined;

describe("an agent's definition", () => {
  it("is whole once it was read", () => {
    expect(parseAgent(WHOLE, "agents.a")).toEqual({
      systemPrompt: "Be brief.",
      model: "m",
      params: { temperature: "0.5", seed: "1", stream: "true" },
      tools: { free: ["fs_read", "web_*"], ask: ["*"] },
      maxSteps: 7,
      contextTokensMax: 2_000,
      steering: false,
    });
    expect(parseAgent({}, "agents.a")).toEqual({
      systemPrompt: "",
      model: "",
      params: {},
      tools: { free: [], ask: [] },
      maxSteps: 50,
      contextTokensMax: 100_000,
      steering: false,
    });
  });

  it.each<[unknown, string]>([
    [null, "agents.a: must be an object"],
    [[], "agents.a: must be an object"],
    ["x", "agents.a: must be an object"],
    [{ prompt: "x" }, "agents.a.prompt: is not known; known are system_prompt, model, params, tools, max_steps, context, steering, answer"],
    [{ "a b": "x" }, "agents.a: is not known; known are system_prompt, model, params, tools, max_steps, context, steering, answer"],
    [{ system_prompt: "\ud800" }, "agents.a.system_prompt: must be a text"],
    [{ params: { stop: ["x"] } }, "agents.a.params.stop: must be a text, a number or a boolean"],
    [{ tools: ["x"] }, "agents.a.tools: must be an object"],
    [{ tools: { deny: [] } }, "agents.a.tools.deny: is not known; known are free, ask"],
    [{ tools: { ask: "x" } }, "agents.a.tools.ask: must be a list"],
    [{ tools: { ask: ["ok", "a*b"] } }, "agents.a.tools.ask[1]: must be a tool's name, or the start of one and *"],
    [{ max_steps: 1.5 }, "agents.a.max_steps: must be a whole number from 1 to 1000"],
    [{ answer: { schema: {} } }, "agents.a.answer: belongs to an agent that the host defines"],
    [{ context: { max_tokens: 10 } }, "agents.a.context.max_tokens: must be a whole number from 1000 to 100000000"],
  ])("is refused by the path of what is wrong: %j", (value, message) => {
    expect(() => parseAgent(value, "agents.a")).toThrow(message);
  });

  it("names its version: any change makes another agent, and the order of params none", async () => {
    const of = (change: object) => agentDigest(parseAgent({ ...WHOLE, ...change }, "a", anything), testDigest);
    const changes: object[] = [
      {},
      { system_prompt: "Be brief!" },
      { model: "n" },
      { params: {} },
      { tools: { free: ["fs_read"], ask: ["*", "web_*"] } },
      { max_steps: 8 },
      { context: {} },
      { steering: true },
      { answer: { schema: { type: "object" } } },
    ];
    expect(new Set(changes.map(of)).size).toBe(changes.length);
    expect(of({ params: { stream: true, seed: 1, temperature: 0.5 } })).toBe(of({}));
    const { id, version } = await createDefinedAgent("scout", WHOLE, { digest: testDigest, at: "agents.scout" }).describe();
    expect([id, version]).toEqual(["scout", `1-${of({}).slice(0, 16)}`]);
  });
});
