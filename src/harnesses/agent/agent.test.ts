import { describe, expect, it } from "vitest";
import type { ModelRequest, ToolCall } from "../../spi/index.ts";
import { messageText, textMessage, ToolChoiceMode } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { AgentWorld, agentConfig, decide, resumed, sayingModel, TestTools, type Saying } from "../../testing/index.ts";
import { createAgentHarness } from "./index.ts";

const TOOLS = {
  read: async (call: ToolCall) => ({ output: { of: call.args?.["path"] ?? "" } }),
  write: async () => ({ output: { ok: true } }),
  picky: {
    check: (call: ToolCall) => (typeof call.args?.["n"] === "number" ? undefined : "n must be a number"),
    run: async () => ({ output: { ok: true } }),
  },
} satisfies ConstructorParameters<typeof TestTools>[0];

const ALL = { tools: { free: ["*"] } };

function world(script: (request: ModelRequest, index: number) => Saying) {
  const tools = new TestTools(TOOLS);
  const model = sayingModel(script);
  const openJournal = ({ clock, digest }: Parameters<typeof createMemoryStore>[0]) => createMemoryStore({ clock, digest });
  return { tools, at: new AgentWorld({ openJournal, agent: createAgentHarness(), model, tools }) };
}

/** Says one thing after the other, and then `done`. */
const inTurn =
  (...sayings: Saying[]) =>
  (_: ModelRequest, index: number): Saying =>
    sayings[index] ?? { text: "done" };

/** A request in short words. */
function told({ messages }: ModelRequest): string[] {
  return messages.map((message) =>
    [
      message.role,
      ...message.parts.map(({ part }) => {
        if (part.case === "toolCall") return `call ${part.value.id}`;
        if (part.case === "toolResult") return `result ${part.value.id}${part.value.isError ? `: ${part.value.error}` : ""}`;
        return part.case === "text" ? part.value.text : (part.case ?? "nothing");
      }),
    ].join(" "),
  );
}

async function turn(script: (request: ModelRequest, index: number) => Saying, config: object, inputs: readonly string[] = ["go"]) {
  const { at, tools } = world(script);
  const host = at.host();
  const session = await host.createSession();
  const outcome = await (await host.begin(session, inputs, { config: agentConfig(config) })).outcome;
  const story = await host.story(session);
  return { at, tools, host, session, outcome, story, requests: at.model.requests };
}

describe("the agent harness", () => {
  it("asks the model, has tools run, and asks again until it has an answer", async () => {
    const script = inTurn({ text: "I look.", calls: [["read", "a", { path: "x" }]] }, { calls: [["write", "b", {}]] });
    const { at, session, outcome, story, requests, tools } = await turn(script, {
      ...ALL,
      system_prompt: "Be brief.",
      params: { temperature: 0 },
    });
    expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(story).toEqual([
      "EXECUTION_START",
      "INPUT go",
      "MODEL_CALL",
      "OUTPUT I look.toolCall",
      "USAGE",
      "TOOL_CALL a",
      "TOOL_RESULT a",
      "MODEL_CALL",
      "OUTPUT toolCall",
      "USAGE",
      "TOOL_CALL b",
      "TOOL_RESULT b",
      "MODEL_CALL",
      "OUTPUT done",
      "USAGE",
      "END COMPLETED",
    ]);
    expect(requests.map(told)[2]).toEqual([
      "system Be brief.",
      "user go",
      "assistant I look. call a",
      "tool result a",
      "assistant call b",
      "tool result b",
    ]);
    expect(requests[0]).toMatchObject({ model: "test", params: { temperature: "0" } });
    expect(requests[0]!.tools!.map(({ name }) => name)).toEqual(["read", "write", "picky"]);
    expect(tools.ran).toEqual(["a", "b"]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("gives the model results in the order of its calls, and one that it cannot have as an error", async () => {
    const calls: Saying["calls"] = [
      ["nothing", "a", {}],
      ["read", "b", { path: "x" }],
      ["picky", "c", { n: "x" }],
      ["read", "d", undefined],
      ["read", "b", { path: "y" }],
      ["read", "", { path: "z" }],
    ];
    const { at, session, story, requests, tools } = await turn(inTurn({ calls }), ALL);
    expect(told(requests[1]!).at(-1)).toBe(
      [
        "tool result a: there is no tool of this name, so nothing was run; there are: read, write, picky",
        "result b",
        "result c: args: n must be a number; the tool was not run",
        "result d: the arguments are not a JSON object; the tool was not run",
        "result b",
        "result ",
      ].join(" "),
    );
    expect(story.filter((line) => line.startsWith("TOOL"))).toEqual([
      "TOOL_RESULT a 0",
      "TOOL_RESULT d 0",
      "TOOL_CALL b",
      "TOOL_CALL c",
      "TOOL_CALL b~2",
      "TOOL_CALL call",
      "TOOL_RESULT c 0",
      "TOOL_RESULT b",
      "TOOL_RESULT b~2",
      "TOOL_RESULT call",
    ]);
    expect(tools.ran).toEqual(["b", "b~2", "call"]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("offers the tools that its definition names, and runs no other", async () => {
    const { requests, tools, story } = await turn(inTurn({ calls: [["write", "a", {}]] }), { tools: { free: ["re*"] } });
    expect(requests[0]!.tools!.map(({ name }) => name)).toEqual(["read"]);
    expect(tools.ran).toEqual([]);
    expect(story.filter((line) => line.startsWith("TOOL"))).toEqual(["TOOL_RESULT a 0"]);
  });

  it("tells the model of a blocked tool that it is blocked and why, and asks nobody", async () => {
    const tools = {
      free: ["*"],
      ask: ["write"],
      blocked: [{ tool: "w*" }, { tool: "write", reason: "The disk is full." }, { tool: "p*" }],
    };
    const calls: Saying["calls"] = [
      ["write", "a", {}],
      ["picky", "b", { n: 1 }],
      ["read", "c", { path: "x" }],
    ];
    const { at, session, outcome, requests, tools: run } = await turn(inTurn({ calls }), { tools });
    expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(requests[0]!.tools!.map(({ name }) => name)).toEqual(["read"]);
    expect(told(requests[1]!).at(-1)).toBe(
      [
        "tool result a: this tool is blocked, so nothing was run: The disk is full.",
        "result b: this tool is blocked, so nothing was run",
        "result c",
      ].join(" "),
    );
    expect(run.ran).toEqual(["c"]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("passes over what its caller keeps in the config", async () => {
    const { outcome, requests } = await turn(inTurn(), { client: { message_id: "m1", tools: [{ name: "read" }] } });
    expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(requests).toHaveLength(1);
  });

  it("offers none where it names none", async () => {
    const { requests } = await turn(inTurn({ calls: [["write", "a", {}]] }), {});
    expect(requests[0]!.tools).toBeUndefined();
    expect(told(requests[1]!).at(-1)).toBe("tool result a: there are no tools; nothing was run");
  });

  it("sends each turn what the turn before it had, and then what is new", async () => {
    const { at } = world(inTurn({ calls: [["read", "a", { path: "x" }]] }, { text: "one" }, { calls: [["read", "a", { path: "y" }]] }));
    await using host = at.host();
    const session = await host.createSession();
    for (const input of ["first", "second"]) {
      await (
        await host.begin(session, [input], { config: agentConfig(ALL) })
      ).outcome;
    }
    const all = at.model.requests.map(told);
    for (const [index, request] of all.entries()) expect(request.slice(0, all[index - 1]?.length ?? 0)).toEqual(all[index - 1] ?? []);
    expect(all.at(-1)).toEqual([
      "user first",
      "assistant call a",
      "tool result a",
      "assistant one",
      "user second",
      "assistant call a",
      "tool result a",
    ]);
    expect(await at.checks(session)).toEqual(["same", "same"]);
  });

  it("has what the system says in a turn at its place, and answers nobody who only listens", async () => {
    const { at } = world(inTurn({ text: "one" }, { text: "two" }));
    await using host = at.host();
    const session = await host.createSession();
    const speak = async (...inputs: ["system" | "user", string][]) =>
      (await host.begin(session, [], { inputs: inputs.map((input) => textMessage(...input)), config: agentConfig(ALL) })).outcome;
    await speak(["system", "Mind the cat."], ["user", "first"]);
    await speak(["system", "Mind the dog."]);
    expect(at.model.requests).toHaveLength(1);
    await speak(["system", "Mind both."], ["user", "second"]);
    expect(told(at.model.requests[1]!)).toEqual([
      "system Mind the cat.",
      "user first",
      "assistant one",
      "system Mind the dog.",
      "system Mind both.",
      "user second",
    ]);
    expect(await at.checks(session)).toEqual(["same", "same", "same"]);
  });

  describe("with tools that are asked for", () => {
    const config = { tools: { free: ["*"], ask: ["write"] } };

    it("parks, and goes on when the call is approved, on another host", async () => {
      const { at, session, host, outcome, tools } = await turn(
        inTurn({
          calls: [
            ["read", "r", { path: "x" }],
            ["write", "w", {}],
          ],
        }),
        config,
      );
      if (outcome.kind !== "parked") throw new Error(outcome.kind);
      expect(tools.ran).toEqual(["r"]);
      await host[Symbol.asyncDispose]();
      await using other = at.host({ hostId: "other" });
      await decide(other, session, outcome.ref, true);
      expect(await resumed(other, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
      expect(tools.ran).toEqual(["r", "w"]);
      expect(told(at.model.requests.at(-1)!).at(-1)).toBe("tool result r result w");
      expect(await at.checks(session)).toEqual(["same"]);
    });

    it("tells the model of a denial", async () => {
      const { at, session, host, outcome, tools } = await turn(
        inTurn({
          calls: [
            ["nothing", "n", {}],
            ["write", "w", {}],
          ],
        }),
        config,
      );
      if (outcome.kind !== "parked") throw new Error(outcome.kind);
      await decide(host, session, outcome.ref, false, { reason: "not today" });
      expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
      expect(tools.ran).toEqual([]);
      expect(told(at.model.requests.at(-1)!).at(-1)).toContain("result w: the call was denied; the tool was not run: not today");
      expect(await at.checks(session)).toEqual(["same"]);
    });

    it("parks at all of several calls, and goes on when each is decided", async () => {
      const { at, session, host, outcome, tools } = await turn(
        inTurn({
          calls: [
            ["write", "a", {}],
            ["write", "b", {}],
          ],
        }),
        config,
      );
      if (outcome.kind !== "parked") throw new Error(outcome.kind);
      const second = { ...outcome.ref, toolCallId: "b", requestSeq: outcome.ref.requestSeq + 1n };
      expect((await host.story(session)).filter((line) => line.startsWith("APPROVAL"))).toEqual([
        "APPROVAL_REQUEST a",
        "APPROVAL_REQUEST b",
      ]);
      const story = await host.records(session);
      const requests = story.filter(({ event }) => event?.body.case === "approval").map(({ seq }) => seq);
      await decide(host, session, { ...second, requestSeq: requests[1]! }, true);
      await decide(host, session, outcome.ref, true);
      expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
      expect(tools.ran.toSorted()).toEqual(["a", "b"]);
      expect(await at.checks(session)).toEqual(["same"]);
    });
  });

  it("asks for last words without tools at its limit of steps, and fails", async () => {
    const script = (_: ModelRequest, index: number): Saying =>
      index < 3 ? { calls: [["read", `c${index}`, { path: "x" }]] } : { text: "so far" };
    const { at, session, host, outcome, story, requests, tools } = await turn(script, { ...ALL, max_steps: 2 });
    expect(outcome).toMatchObject({ kind: "ended", state: "FAILED" });
    expect(tools.ran).toEqual(["c0", "c1"]);
    expect(requests.map(({ toolChoice }) => toolChoice?.mode)).toEqual([undefined, undefined, ToolChoiceMode.NONE]);
    expect(requests[2]!.tools).toHaveLength(3);
    expect(story.slice(-4)).toEqual(["OUTPUT toolCall", "USAGE", "TOOL_RESULT c2 0", "END FAILED"]);
    expect((await host.records(session)).at(-1)!.event!.body.value).toMatchObject({
      error: { code: 8, description: "max_steps: the turn was not done after 2 calls of the model; a further turn goes on from here" },
    });
    expect(await at.checks(session)).toEqual(["same"]);
    await (
      await host.begin(session, [], { config: agentConfig(ALL) })
    ).outcome;
    expect((await host.story(session)).at(-1)).toBe("END COMPLETED");
    expect(messageText(at.model.requests.at(-1)!.messages[0]!)).toBe("go");
  });

  it("says nothing where nobody waits for an answer", async () => {
    const { story, requests } = await turn(inTurn(), ALL, []);
    expect(story).toEqual(["EXECUTION_START", "END COMPLETED"]);
    expect(requests).toEqual([]);
  });

  it.each([
    [{ model: 1 }, "config.model: must be a text"],
    [{ tools: { free: ["a b"] } }, "config.tools.free[0]: must be a tool's name, or the start of one and *"],
    [{ max_steps: 0 }, "config.max_steps: must be a whole number from 1 to 1000"],
    [
      { tool: {} },
      "config.tool: is not known; known are system_prompt, model, params, tools, max_steps, context, steering, answer, mode, observation, client",
    ],
    [{ mode: "ooda" }, "config.mode: must be react or ooda_re_act"],
  ])("fails for good on a config that is wrong: %j", async (config, description) => {
    const { host, session } = await turn(inTurn(), config);
    expect((await host.records(session)).at(-1)!.event!.body.value).toMatchObject({ state: "FAILED", error: { code: 3, description } });
  });
});
