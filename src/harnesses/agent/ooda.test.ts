import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { SessionUid } from "../../base/index.ts";
import { CONTROLLER_LIMITS } from "../../controller/index.ts";
import { PartSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { isObservationCall, messageText, textMessage, unknownOutcome, type ModelRequest } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import {
  AgentWorld,
  agentConfig,
  decide,
  DyingStore,
  resumed,
  sayingModel,
  TestTools,
  type Saying,
  type TestHost,
  type TestToolRun,
} from "../../testing/index.ts";
import { testDigest } from "../../testing/ports.ts";
import { createAgentHarness, createDefinedAgent } from "./index.ts";

const DEFINITION = {
  mode: "ooda_re_act",
  observation: { tool: "eyes" },
  tools: { free: ["*"], ask: ["gated"], pure: ["look*"], blocked: [{ tool: "eyes" }, { tool: "fly", reason: "There are no wings." }] },
} as const;
const CONFIG = agentConfig(DEFINITION);
const OBSERVATION = "[Observation of how things stand at this point:]";

interface Surroundings {
  readonly sayings?: readonly Saying[];
  readonly script?: (request: ModelRequest, index: number) => Saying;
  readonly tools?: Readonly<Record<string, TestToolRun>>;
}

/** An agent with eyes that count what they see, a tool that moves, and two that only look. */
function world({ sayings = [], script = (_, index) => sayings[index] ?? { text: "done" }, tools = {} }: Surroundings) {
  let seen = 0;
  const eyes = async () => ({ output: { at: ++seen } });
  const moved = async () => ({ output: { moved: true } });
  const idempotent = (run: TestToolRun) => ({ idempotent: true, run });
  const made = { eyes, look: moved, look_up: moved, move: moved, fly: moved, gated: moved, ...tools };
  return new AgentWorld({
    openJournal: ({ clock, digest }) => createMemoryStore({ clock, digest }),
    agent: createAgentHarness(),
    model: sayingModel(script),
    tools: new TestTools(Object.fromEntries(Object.entries(made).map(([name, run]) => [name, idempotent(run)]))),
  });
}

async function turn(host: TestHost, session: SessionUid, input = "go", config = CONFIG) {
  return (await host.begin(session, [input], { config })).outcome;
}

/** One turn in a world of its own. */
async function lived(surroundings: Surroundings, config = CONFIG) {
  const at = world(surroundings);
  const host = at.host();
  const session = await host.createSession();
  const outcome = await turn(host, session, "go", config);
  const end = (await host.records(session)).at(-1)!.event!.body.value;
  return { at, host, session, outcome, end, story: await brief(host, session), ran: (at.tools as TestTools).ran.map(short) };
}

const short = (text: string): string => text.replaceAll(/observation\.[0-9a-f-]+/g, "observation");
const brief = async (host: TestHost, session: SessionUid) => (await host.story(session)).filter((line) => line !== "USAGE").map(short);

/** A message with calls, each given as its tool and its id. */
const calling = (...calls: readonly string[]): Saying => ({ calls: calls.map((call) => [call.split(" ")[0]!, call.split(" ")[1]!, {}]) });

/** A request in short words, without the instructions. */
const told = ({ messages }: ModelRequest): string[] =>
  messages.slice(1).map(({ role, parts }) =>
    [
      role,
      ...parts.map(({ part }) => {
        if (part.case === "toolResult") return `result ${part.value.id}${part.value.isError ? `: ${part.value.error}` : ""}`;
        if (part.case === "toolCall") return `call ${part.value.id}`;
        if (part.case === "data") return JSON.stringify(part.value.data);
        return part.case === "text" ? part.value.text.replace(OBSERVATION, "observed") : part.case;
      }),
    ].join(" "),
  );

describe("an agent in mode ooda_re_act", () => {
  it("observes, asks the model, and acts, in this order and again and again", async () => {
    const { at, session, outcome, story } = await lived({ sayings: [{ text: "I move.", calls: [["move", "a", {}]] }] });
    expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(story).toEqual([
      "EXECUTION_START",
      "INPUT go",
      "TOOL_CALL observation",
      "TOOL_RESULT observation",
      "MODEL_CALL",
      "OUTPUT I move.toolCall",
      "TOOL_CALL a",
      "TOOL_RESULT a",
      "TOOL_CALL observation~2",
      "TOOL_RESULT observation~2",
      "MODEL_CALL",
      "OUTPUT done",
      "END COMPLETED",
    ]);
    expect(at.model.requests.map(told)).toEqual([
      ["user go", 'user observed {"at":1}'],
      ["user go", 'user observed {"at":1}', "assistant I move. call a", "tool result a", 'user observed {"at":2}'],
    ]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("tells the model how it goes about things, and offers what it is to call", async () => {
    const { at } = await lived({});
    const [request] = at.model.requests;
    expect(messageText(request!.messages[0]!)).toMatch(/^Before each of your answers you are shown an observation/);
    expect(request!.tools!.map(({ name }) => name)).toEqual(["look", "look_up", "move", "gated"]);
  });

  it("keeps what it observed where it stood, in later turns too", async () => {
    const at = world({ sayings: [calling("move a"), { text: "one" }, calling("move a")] });
    await using host = at.host();
    const session = await host.createSession();
    for (const input of ["first", "second"]) await turn(host, session, input);
    const requests = at.model.requests.map(told);
    for (const [index, request] of requests.entries()) {
      expect(request.slice(0, requests[index - 1]?.length ?? 0)).toEqual(requests[index - 1] ?? []);
    }
    expect(requests.at(-1)!.filter((line) => line.startsWith("user"))).toEqual([
      "user first",
      'user observed {"at":1}',
      'user observed {"at":2}',
      "user second",
      'user observed {"at":3}',
      'user observed {"at":4}',
    ]);
    expect(await at.checks(session)).toEqual(["same", "same"]);
  });

  it("gives each observation an id that no other call of the session has, whatever ids its model gives", async () => {
    const { at, host, session } = await lived({
      script: ({ messages }, index) => {
        const own = index === 0 ? "observation" : `observation.${messages.length}`;
        return index < 2 ? { calls: [["move", own, {}]] } : { text: "done" };
      },
    });
    await turn(host, session, "again");
    const calls = (await at.events(host, session)).flatMap((event) =>
      event.body.case === "tool" ? [[event, event.body.value.id] as const] : [],
    );
    expect(new Set(calls.map(([, id]) => id)).size).toBe(calls.length);
    expect(calls.map(([event, id]) => (isObservationCall(event) ? "observation" : id))).toEqual([
      "observation",
      "observation",
      "observation",
      "observation.6",
      "observation",
      "observation",
    ]);
    expect(calls.filter(([event]) => isObservationCall(event))).toHaveLength(4);
    expect(await at.checks(session)).toEqual(["same", "same"]);
  });

  it("shows the model pictures and text that were observed", async () => {
    const file = create(PartSchema, {
      part: { case: "file", value: { mime: "image/png", source: { case: "bytes", value: Uint8Array.of(1) } } },
    });
    const text = create(PartSchema, { part: { case: "text", value: { text: "a cup" } } });
    const { at } = await lived({ tools: { eyes: async () => ({ content: [text, file], output: { at: 1 } }) } });
    expect(told(at.model.requests[0]!)).toEqual(["user go", 'user observed {"at":1} a cup file']);
  });

  describe("stops before the model is asked", () => {
    const blank = create(PartSchema, { part: { case: "text", value: { text: " \n" } } });
    it.each<[string, TestToolRun]>([
      ["failed", async () => ({ isError: true, error: "the lens is dark" })],
      ["failed", async () => Promise.reject(new Error("no camera"))],
      ["has an unknown outcome", async (call) => unknownOutcome(call.id, "the line broke")],
      ["has nothing in it", async () => ({})],
      ["has nothing in it", async () => ({ output: {}, content: [blank] })],
    ])("where its observation %s", async (what, eyes) => {
      const { at, session, outcome, end, story } = await lived({ tools: { eyes } });
      expect(outcome).toMatchObject({ kind: "ended", state: "FAILED" });
      expect(end).toMatchObject({
        error: { code: 9, description: `observation: the call of eyes ${what}, so the model was not asked; a further turn observes again` },
      });
      expect(story.slice(2).map((line) => line.split(" ")[0])).toEqual(["TOOL_CALL", "TOOL_RESULT", "END"]);
      expect(at.model.requests).toEqual([]);
      expect(await at.checks(session)).toEqual(["same"]);
    });

    it.each([
      ["ears", "observation: the tool ears is not on offer, so the model was not asked; start the turn with it"],
      [undefined, "observation: the mode ooda_re_act needs a tool that observes; set observation.tool"],
    ])("where it has no tool that observes: %s", async (tool, description) => {
      const { at, session, end, story } = await lived(
        {},
        agentConfig({ ...DEFINITION, observation: tool === undefined ? undefined : { tool } }),
      );
      expect(end).toMatchObject({ state: "FAILED", error: { code: 9, description } });
      expect(story).toEqual(["EXECUTION_START", "INPUT go", "END FAILED"]);
      expect(at.model.requests).toEqual([]);
      expect(await at.checks(session)).toEqual(["same"]);
    });

    it("in the middle of a turn too, and goes on in the next one", async () => {
      let calls = 0;
      const eyes: TestToolRun = async () => (++calls === 2 ? { isError: true, error: "fog" } : { output: { at: calls } });
      const { at, host, session, outcome } = await lived({ tools: { eyes }, sayings: [calling("move a")] });
      expect(outcome).toMatchObject({ kind: "ended", state: "FAILED" });
      expect(await (await host.begin(session, [], { config: CONFIG })).outcome).toMatchObject({ state: "COMPLETED" });
      expect(told(at.model.requests.at(-1)!)).toEqual([
        "user go",
        'user observed {"at":1}',
        "assistant call a",
        "tool result a",
        'user observed {"at":3}',
      ]);
      expect(await at.checks(session)).toEqual(["same", "same"]);
    });
  });

  it("stops where the host's policy keeps it from observing", async () => {
    const at = world({});
    await using host = at.host({ policies: [{ name: "dark", tool: "eyes", args: {}, do: "ask", reason: "" }] });
    const session = await host.createSession();
    expect(await turn(host, session)).toMatchObject({ kind: "ended", state: "FAILED" });
    expect((at.tools as TestTools).ran).toEqual([]);
  });

  describe("acts", () => {
    it("with all pure calls of a message and with the first physical one", async () => {
      const { at, session, outcome, ran } = await lived({
        sayings: [calling("look l1", "move m1", "look_up l2", "move m2", "fly f", "gated g")],
      });
      expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
      expect(ran).toEqual(["observation", "l1", "m1", "l2", "observation~2"]);
      const later =
        "one physical tool runs at a time, so this one was not run; ask for it again after the next observation if it is still right";
      expect(told(at.model.requests[1]!).at(-2)).toBe(
        `tool result l1 result m1 result l2 result m2: ${later} result f: this tool is blocked, so nothing was run: There are no wings. result g: ${later}`,
      );
      expect(await at.checks(session)).toEqual(["same"]);
    });

    it("with no later one where the first cannot be called", async () => {
      for (const first of [calling("fly f"), calling("swim f"), { calls: [["move", "f"] as const] }]) {
        const { ran } = await lived({ sayings: [{ calls: [...first.calls!, ...calling("move m", "look l").calls!] }] });
        expect(ran).toEqual(["observation", "l", "observation~2"]);
      }
    });

    it("beside its pure calls, so that nothing waits for them", async () => {
      const moving = Promise.withResolvers<void>();
      const { outcome } = await lived({
        sayings: [calling("look l", "move m")],
        tools: {
          look: async () => moving.promise.then(() => ({ output: { seen: true } })),
          move: async () => {
            moving.resolve();
            return { output: { moved: true } };
          },
        },
      });
      expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    });

    it("when a person has approved, on what was observed before", async () => {
      const { at, host, session, outcome } = await lived({ sayings: [calling("gated g", "move m", "look l")] });
      if (outcome.kind !== "parked") throw new Error(outcome.kind);
      await host[Symbol.asyncDispose]();
      await using other = at.host({ hostId: "other" });
      await decide(other, session, outcome.ref, true);
      expect(await resumed(other, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
      expect((at.tools as TestTools).ran.map(short)).toEqual(["observation", "l", "g", "observation~2"]);
      expect(await at.checks(session)).toEqual(["same"]);
    });
  });

  describe("whose observation was too old by the time it acted", () => {
    const stale = { isError: true, error: "what was observed is too old", output: { stale_observation: true } };
    const moving = (_: ModelRequest, index: number): Saying => (index < 6 ? { calls: [["move", `m${index}`, {}]] } : { text: "done" });

    it("observes again, and stops at the third refusal in a row", async () => {
      const { at, session, outcome, end, ran } = await lived({ script: moving, tools: { move: async () => stale } });
      expect(outcome).toMatchObject({ kind: "ended", state: "FAILED" });
      expect(end).toMatchObject({
        error: {
          code: 9,
          description:
            "observation: 3 physical calls in a row were refused because what was observed was too old by then; a further turn observes again",
        },
      });
      expect(ran).toEqual(["observation", "m0", "observation~2", "m1", "observation~3", "m2"]);
      expect(await at.checks(session)).toEqual(["same"]);
    });

    it("goes on where one of its calls came in time", async () => {
      const { at, session, outcome } = await lived({
        script: moving,
        tools: {
          move: async ({ id }) => (id === "m2" ? { output: { moved: true } } : id === "m5" ? { isError: true, error: "stuck" } : stale),
        },
      });
      expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
      expect(at.model.requests).toHaveLength(7);
      expect(await at.checks(session)).toEqual(["same"]);
    });
  });

  it("puts the observation behind what the user says meanwhile", async () => {
    let steer = (): void => undefined;
    const at = world({
      sayings: [calling("move a")],
      tools: {
        move: async () => {
          steer();
          return { output: { moved: true } };
        },
      },
    });
    await using host = at.host();
    const session = await host.createSession();
    steer = () => void host.controller.steer({ session, message: textMessage("user", "slowly"), from: undefined });
    await turn(host, session, "go", agentConfig({ ...DEFINITION, steering: true }));
    expect(told(at.model.requests[1]!).slice(-3)).toEqual(["tool result a", "user slowly", 'user observed {"at":2}']);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("comes to the same end wherever its host is killed", async () => {
    const sayings = [calling("look l", "move m")];
    // What it says depends on what it was asked, not on how often: a crash asks it again.
    const script = ({ messages }: ModelRequest): Saying =>
      sayings[messages.filter(({ role }) => role === "assistant").length] ?? { text: "done" };
    const { story } = await lived({ script });
    let deaths = 0;
    for (let atAppend = 2, dead = true; dead; atAppend += 1) {
      for (const when of ["before", "after"] as const) {
        const at = world({ script });
        const store = new DyingStore(at.journal, { atAppend, when });
        const dying = at.host({ journal: store.view(), hostId: "dying" });
        const session = await dying.createSession();
        await turn(dying, session);
        await dying[Symbol.asyncDispose]();
        dead = store.dead;
        deaths += dead ? 1 : 0;
        at.ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
        await using host = at.host({ hostId: "next" });
        await resumed(host, session);
        expect((await brief(host, session)).toSorted()).toEqual(story.toSorted());
        expect(await at.checks(session)).toEqual(["same"]);
      }
    }
    expect(deaths).toBeGreaterThan(15);
  });

  it("is an agent that the host defines, whose mode no turn changes", async () => {
    const agent = createDefinedAgent("robot", DEFINITION, { digest: testDigest, at: "agents.robot" });
    const at = new AgentWorld({
      openJournal: ({ clock, digest }) => createMemoryStore({ clock, digest }),
      agent,
      model: sayingModel(() => ({ text: "done" })),
      tools: new TestTools({ eyes: async () => ({ output: { at: 1 } }) }),
    });
    await using host = at.host();
    const session = await host.createSession();
    expect(await turn(host, session, "go", agentConfig({ model: "m" }))).toMatchObject({ state: "COMPLETED" });
    expect(told(at.model.requests[0]!)).toEqual(["user go", 'user observed {"at":1}']);
    expect(await turn(host, session, "go", agentConfig({ mode: "react" }))).toMatchObject({ state: "FAILED" });
    expect((await host.records(session)).at(-1)!.event!.body.value).toMatchObject({
      error: { description: "config.mode: is not known; known are model, params" },
    });
  });
});
