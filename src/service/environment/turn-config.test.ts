import { describe, expect, it } from "vitest";
import type { Environment } from "../../spi/index.ts";
import { agentDefinition, plainEnvironment, resolveHost, TURN_TOOLS_MAX, turnConfig, type EnvironmentTurn } from "./index.ts";

const environment = (changes: Partial<Environment> = {}): Environment => ({ ...plainEnvironment("lab"), ...changes });

const turnIn = (where: Environment, changes: Partial<EnvironmentTurn> & { readonly hostId?: string } = {}): EnvironmentTurn => ({
  host: resolveHost(where, changes.hostId ?? ""),
  clientTools: [],
  hostTools: [],
  projectContext: [],
  model: "",
  messageId: "m-1",
  ...changes,
});

const definitionIn = (where: Environment, changes: Parameters<typeof turnIn>[1] = {}) => agentDefinition(where, turnIn(where, changes));
const named = (name: string, category: "pure" | "physical" = "physical") => ({ name, category, timeoutMs: 1_000 });

describe("the config of a turn", () => {
  it("says no more than is known", () => {
    expect(definitionIn(environment())).toEqual({
      tools: { free: [], ask: [], blocked: [], pure: [] },
      client: { message_id: "m-1", tools: [] },
    });
  });

  it("has what the environment and the client have said", () => {
    const agent = { system_prompt: "You help.", params: { temperature: 0 }, max_steps: 9, steering: true };
    const made = definitionIn(environment({ agent, observation: { tool: "look", maxAgeMs: 250 } }), {
      mode: "ooda_re_act",
      clientTools: [named("look", "pure"), { ...named("move"), timeoutMs: 30_000 }],
      projectContext: ["Use tabs.", "  ", "Be careful."],
      maxContextTokens: 4_000,
      model: "m-9",
    });
    expect(made).toEqual({
      system_prompt: "You help.\n\nUse tabs.\n\nBe careful.",
      model: "m-9",
      params: { temperature: 0 },
      tools: { free: ["look"], ask: ["move"], blocked: [], pure: ["look"] },
      max_steps: 9,
      steering: true,
      context: { max_tokens: 4_000 },
      mode: "ooda_re_act",
      observation: { tool: "look" },
      client: {
        message_id: "m-1",
        tools: [
          { name: "look", category: "pure", timeout_ms: 1_000 },
          { name: "move", category: "physical", timeout_ms: 30_000 },
        ],
        observation: { tool: "look", max_age_ms: 250 },
      },
    });
  });

  it("is JSON in UTF-8, and empty for another harness than the agent", () => {
    const where = environment({ hosts: { box: { harness: "boxed", labels: {} } } });
    const turn = turnIn(where, { projectContext: ["größer"] });
    expect(JSON.parse(new TextDecoder().decode(turnConfig(where, turn)))).toEqual(agentDefinition(where, turn));
    expect(turnConfig(where, turnIn(where, { hostId: "box", clientTools: [named("a")] }))).toEqual(new Uint8Array());
  });

  it("looks at something only in the mode that does", () => {
    const where = environment({ observation: { tool: "look", maxAgeMs: 250 } });
    const { observation, client, mode } = definitionIn(where, { mode: "react" });
    expect({ observation, client, mode }).toEqual({
      observation: undefined,
      client: { message_id: "m-1", tools: [] },
      mode: "react",
    });
  });

  it("is refused for the mode that looks where there is nothing to look at", () => {
    expect(() => definitionIn(environment(), { mode: "ooda_re_act" })).toThrow(/^ai_mode: must be react/);
  });
});

describe("the tools of a turn", () => {
  it("are sorted by what the rules say of each", () => {
    const where = environment({
      tools: { pure: ["files__read_*"], physical: ["files__*"] },
      permissions: [
        { tool: "files__delete", policy: "block", reason: "nothing is deleted here" },
        { tool: "shell", policy: "block" },
        { tool: "files__read_secret", policy: "require_confirmation" },
      ],
    });
    const hostTools = ["files__read_file", "files__read_secret", "files__write", "files__delete", "mail__send"];
    expect(definitionIn(where, { hostTools, clientTools: [named("shell"), named("grep", "pure"), named("run")] }).tools).toEqual({
      free: ["grep", "files__read_file"],
      ask: ["run", "files__read_secret", "files__write"],
      blocked: [
        { tool: "shell", reason: "it is blocked in this environment" },
        { tool: "files__delete", reason: "nothing is deleted here" },
      ],
      pure: ["grep", "files__read_file", "files__read_secret"],
    });
  });

  it("of the host all act on the world where the environment does not say, and are none where it names none", () => {
    const hostTools = ["a", "b"];
    expect(definitionIn(environment(), { hostTools }).tools.ask).toEqual(["a", "b"]);
    expect(definitionIn(environment({ tools: { pure: [], physical: [] } }), { hostTools }).tools.ask).toEqual([]);
  });

  it("act on the world where two patterns of one length fit, and are what the longer one says otherwise", () => {
    const where = environment({ tools: { pure: ["a*", "b_long*", "c"], physical: ["a*", "b_*", "*c*c*"] } });
    const { pure, ask } = definitionIn(where, { hostTools: ["ab", "b_longer", "c"] }).tools;
    expect({ pure, ask }).toEqual({ pure: ["b_longer", "c"], ask: ["ab"] });
  });

  it("are those that are at the chosen host", () => {
    const where = environment({ hosts: { arm: { tools: ["arm__*"], labels: {} } } });
    const hostTools = ["arm__move", "leg__move"];
    expect(definitionIn(where, { hostTools, hostId: "arm" }).tools.ask).toEqual(["arm__move"]);
    expect(definitionIn(where, { hostTools, hostId: "" }).tools.ask).toEqual(hostTools);
  });

  it("act on the world if the client or the host says so, where both have a name", () => {
    const where = environment({ tools: { pure: ["b"], physical: ["a"] } });
    const { ask } = definitionIn(where, { hostTools: ["a", "b"], clientTools: [named("a", "pure"), named("b")] }).tools;
    expect(ask).toEqual(["a", "b"]);
  });

  it("only look where the environment looks with them, and are on offer for that", () => {
    const where = environment({ observation: { tool: "look", maxAgeMs: 250 }, tools: { pure: [], physical: ["arm__*"] } });
    expect(definitionIn(where, { hostTools: ["arm__move", "look"] }).tools).toMatchObject({ pure: ["look"], free: ["look"] });
    expect(definitionIn(where, { clientTools: [named("look")] }).tools).toMatchObject({ pure: ["look"], ask: [] });
    expect(definitionIn(where, { hostTools: ["arm__move"] }).tools.pure).toEqual([]);
  });

  it("are so many at most as an agent takes", () => {
    const hostTools = Array.from({ length: TURN_TOOLS_MAX }, (_, index) => `t${index}`);
    expect(definitionIn(environment(), { hostTools }).tools.ask).toEqual(hostTools);
    const more = definitionIn(environment(), { hostTools, clientTools: [named("mine")] }).tools.ask;
    expect([more.length, more[0], more.at(-1)]).toEqual([TURN_TOOLS_MAX, "mine", `t${TURN_TOOLS_MAX - 2}`]);
  });
});
