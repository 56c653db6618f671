import { describe, expect, it } from "vitest";
import { testDigest } from "../../testing/ports.ts";
import { createDefinedAgent, type AgentDefinition } from "./index.ts";
import { agentDigest, parseAgent } from "./definition.ts";

const WHOLE: AgentDefinition = {
  system_prompt: "Be brief.",
  model: "m",
  params: { temperature: 0.5, seed: 1, stream: true },
  tools: { free: ["fs_read", "web_*"], ask: ["*"], blocked: [{ tool: "rm", reason: "never" }, { tool: "su*" }], pure: ["fs_read"] },
  max_steps: 7,
  context: { max_tokens: 2_000 },
  mode: "ooda_re_act",
  observation: { tool: "arm__state" },
  client: { message_id: "m1" },
};
const KNOWN = "known are system_prompt, model, params, tools, max_steps, context, steering, answer, mode, observation, client";

const anything = () => () => undefined;

describe("an agent's definition", () => {
  it("is whole once it was read", () => {
    expect(parseAgent(WHOLE, "agents.a")).toEqual({
      systemPrompt: "Be brief.",
      model: "m",
      params: { temperature: "0.5", seed: "1", stream: "true" },
      tools: {
        free: ["fs_read", "web_*"],
        ask: ["*"],
        blocked: [
          { pattern: "rm", reason: "never" },
          { pattern: "su*", reason: "" },
        ],
        pure: ["fs_read"],
      },
      maxSteps: 7,
      contextTokensMax: 2_000,
      steering: false,
      mode: "ooda_re_act",
      observationTool: "arm__state",
      client: '{"message_id":"m1"}',
    });
    expect(parseAgent({}, "agents.a")).toEqual({
      systemPrompt: "",
      model: "",
      params: {},
      tools: { free: [], ask: [], blocked: [], pure: [] },
      maxSteps: 50,
      contextTokensMax: 100_000,
      steering: false,
      observationTool: "",
      client: "",
    });
  });

  it.each<[unknown, string]>([
    [null, "agents.a: must be an object"],
    [[], "agents.a: must be an object"],
    ["x", "agents.a: must be an object"],
    [{ prompt: "x" }, `agents.a.prompt: is not known; ${KNOWN}`],
    [{ "a b": "x" }, `agents.a: is not known; ${KNOWN}`],
    [{ system_prompt: "\ud800" }, "agents.a.system_prompt: must be a text"],
    [{ params: { stop: ["x"] } }, "agents.a.params.stop: must be a text, a number or a boolean"],
    [{ tools: ["x"] }, "agents.a.tools: must be an object"],
    [{ tools: { deny: [] } }, "agents.a.tools.deny: is not known; known are free, ask, blocked, pure"],
    [{ tools: { ask: "x" } }, "agents.a.tools.ask: must be a list"],
    [{ tools: { ask: ["ok", "a*b"] } }, "agents.a.tools.ask[1]: must be a tool's name, or the start of one and *"],
    [{ max_steps: 1.5 }, "agents.a.max_steps: must be a whole number from 1 to 1000"],
    [{ answer: { schema: {} } }, "agents.a.answer: belongs to an agent that the host defines"],
    [{ tools: { blocked: ["rm"] } }, "agents.a.tools.blocked[0]: must be an object"],
    [{ tools: { blocked: [{ reason: "x" }] } }, "agents.a.tools.blocked[0].tool: must be a tool's name, or the start of one and *"],
    [
      { tools: { blocked: [{ tool: "rm", reason: "x".repeat(1_025) }] } },
      "agents.a.tools.blocked[0].reason: must have at most 1024 characters",
    ],
    [{ tools: { pure: ["a b"] } }, "agents.a.tools.pure[0]: must be a tool's name, or the start of one and *"],
    [{ mode: "ooda" }, "agents.a.mode: must be react or ooda_re_act"],
    [{ observation: {} }, "agents.a.observation.tool: must be a tool's name"],
    [{ observation: { tool: "arm*" } }, "agents.a.observation.tool: must be a tool's name"],
    [{ client: [] }, "agents.a.client: must be a JSON object"],
    [{ context: { max_tokens: 10 } }, "agents.a.context.max_tokens: must be a whole number from 1000 to 100000000"],
  ])("is refused by the path of what is wrong: %j", (value, message) => {
    expect(() => parseAgent(value, "agents.a")).toThrow(message);
  });

  it("needs a tool that observes in the mode that observes", () => {
    const make = () => createDefinedAgent("scout", { mode: "ooda_re_act" }, { digest: testDigest, at: "agents.scout" });
    expect(make).toThrow("agents.scout.observation.tool: must name the tool that observes; the mode ooda_re_act needs one");
  });

  it("takes lists and reasons up to their limits", () => {
    const blocked = (count: number, reason: number) => ({
      tools: { blocked: Array.from({ length: count }, () => ({ tool: "rm", reason: "x".repeat(reason) })) },
    });
    expect(parseAgent(blocked(1_000, 1_024), "agents.a").tools.blocked).toHaveLength(1_000);
    expect(() => parseAgent(blocked(1_001, 1), "agents.a")).toThrow("agents.a.tools.blocked: must have at most 1000 entries");
    const pure = (count: number) => ({ tools: { pure: Array(count).fill("look*") } });
    expect(parseAgent(pure(1_000), "agents.a").tools.pure).toHaveLength(1_000);
    expect(() => parseAgent(pure(1_001), "agents.a")).toThrow("agents.a.tools.pure: must have at most 1000 entries");
  });

  it("may hold what its client keeps there, as far as it is JSON", () => {
    expect(() => parseAgent({ client: { n: 1n } }, "agents.a")).toThrow("agents.a.client: must be a JSON object");
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
      { mode: "react" },
      { mode: undefined },
      { observation: { tool: "arm__view" } },
      { client: { message_id: "m2" } },
      { tools: { ...WHOLE.tools, pure: [] } },
      { tools: { ...WHOLE.tools, blocked: [{ tool: "rm", reason: "ever" }, { tool: "su*" }] } },
    ];
    expect(new Set(changes.map(of)).size).toBe(changes.length);
    expect(of({ params: { stream: true, seed: 1, temperature: 0.5 } })).toBe(of({}));
    const { id, version } = await createDefinedAgent("scout", WHOLE, { digest: testDigest, at: "agents.scout" }).describe();
    expect([id, version]).toEqual(["scout", `2-${of({}).slice(0, 16)}`]);
  });

  it("without a mode and what goes with it is called what it was called before there were any", async () => {
    const { mode: _mode, observation: _observation, client: _client, ...rest } = WHOLE;
    const older = { ...rest, tools: { free: ["fs_read", "web_*"], ask: ["*"] } };
    const { version } = await createDefinedAgent("scout", older, { digest: testDigest, at: "agents.scout" }).describe();
    expect(version).toBe("2-3b6f422e3df0da13");
  });
});
