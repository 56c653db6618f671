import { describe, expect, it } from "vitest";
import type { SessionUid } from "../../base/index.ts";
import { CONTROLLER_LIMITS } from "../../controller/index.ts";
import { baselineAccount, isObservationCall, messageText, textMessage, type ModelRequest } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import {
  AgentWorld,
  agentConfig,
  DyingStore,
  resumed,
  sayingModel,
  storyOf,
  TestTools,
  type Saying,
  type TestHost,
} from "../../testing/index.ts";
import { createAgentHarness } from "./index.ts";

/** Eyes with much to say, a tool with little, and little room. */
const DEFINITION = { mode: "ooda_re_act", observation: { tool: "eyes" }, tools: { free: ["move", "look"], pure: ["look"] } };
const CONFIG = agentConfig({ ...DEFINITION, context: { max_tokens: 3_000 } });
const ROOMY = agentConfig(DEFINITION);
const LONG = "words and more words, ".repeat(60);
const SPOKEN = "I am going to move, and I say so at length. ".repeat(12);

const isSummary = ({ messages }: ModelRequest): boolean => messageText(messages[0]!).startsWith("You keep the notes");

/** An agent that makes a call in each of so many steps; what it says depends on what it was asked. */
function world({ steps, tool = "move", text = "" }: { readonly steps: number; readonly tool?: string; readonly text?: string }) {
  const script = ({ messages }: ModelRequest): Saying => {
    const ids = messages.flatMap(({ parts }) =>
      parts.flatMap(({ part }) => (part.case === "toolCall" ? [Number(part.value.id.slice(1))] : [])),
    );
    const step = Math.max(-1, ...ids) + 1;
    return step < steps ? { text, calls: [[tool, `c${step}`, { n: step }]] } : { text: "done" };
  };
  let seen = 0;
  return new AgentWorld({
    openJournal: ({ clock, digest }) => createMemoryStore({ clock, digest }),
    agent: createAgentHarness(),
    model: sayingModel((request) => (isSummary(request) ? { text: "The user wants all of it." } : script(request))),
    tools: new TestTools({
      eyes: { idempotent: true, run: async () => ({ output: { at: ++seen, text: LONG } }) },
      move: { idempotent: true, run: async () => ({ output: { moved: true } }) },
      look: { idempotent: true, run: async () => ({ output: { text: LONG } }) },
    }),
  });
}

async function turn(host: TestHost, session: SessionUid, inputs = [textMessage("user", "move about")], config = CONFIG) {
  return (await host.begin(session, [], { inputs, config })).outcome;
}

const accounts = (events: Awaited<ReturnType<AgentWorld["events"]>>) => events.flatMap((event) => baselineAccount(event) ?? []);

/** What a request has of observations and results, in short words. */
const shapes = ({ messages }: ModelRequest): string[] =>
  messages.slice(1).flatMap(({ parts }) => {
    const [first] = parts;
    if (first?.part.case === "toolResult") return [first.part.value.output === undefined ? "a note of a result" : "a result"];
    if (first?.part.case !== "text") return [];
    if (first.part.value.text.startsWith("[Observation")) return ["an observation"];
    return first.part.value.text.startsWith("[An observation") ? ["a note of an observation"] : [];
  });

describe("an agent that observes and whose request grows too large", () => {
  it("leaves out old observations before any result, and never the newest", async () => {
    const at = world({ steps: 8 });
    await using host = at.host();
    const session = await host.createSession();
    expect(await turn(host, session)).toMatchObject({ state: "COMPLETED" });
    expect(accounts(await at.events(host, session))[0]).toBe('{"observations":8,"results":0,"reasoning":0,"summary":0}');
    for (const request of at.model.requests.filter((each) => !isSummary(each))) {
      expect(shapes(request).at(-1)).toBe("an observation");
      expect(shapes(request)).not.toContain("a note of a result");
    }
    const last = at.model.requests.at(-1)!;
    expect(shapes(last)).toContain("a note of an observation");
    await turn(host, session, [textMessage("user", "and?")], ROOMY);
    const next = at.model.requests.at(-1)!;
    expect(next.messages.slice(0, last.messages.length)).toEqual(last.messages);
    expect(await at.checks(session)).toEqual(["same", "same"]);
  });

  it("leaves out old results then, and none that the model has not seen", async () => {
    const at = world({ steps: 8, tool: "look" });
    await using host = at.host();
    const session = await host.createSession();
    expect(await turn(host, session)).toMatchObject({ state: "COMPLETED" });
    const acting = at.model.requests.filter((request) => !isSummary(request)).slice(1);
    for (const request of acting) expect(shapes(request).slice(-2)).toEqual(["a result", "an observation"]);
    expect(acting.flatMap(shapes)).toContain("a note of a result");
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("has a summary made before it observes, since that takes its time", async () => {
    const at = world({ steps: 16, text: SPOKEN });
    await using host = at.host();
    const session = await host.createSession();
    expect(await turn(host, session)).toMatchObject({ state: "COMPLETED" });
    const events = await at.events(host, session);
    const story = events.map((event) => (isObservationCall(event) ? "OBSERVE" : storyOf(event).split(" ")[0]!));
    const asked = story.filter((line) => line === "OBSERVE" || line === "MODEL_CALL" || line === "LIFECYCLE").join(" ");
    expect(asked).toContain("MODEL_CALL LIFECYCLE MODEL_CALL OBSERVE MODEL_CALL");
    expect(asked).not.toContain("OBSERVE LIFECYCLE MODEL_CALL");
    for (const request of at.model.requests) if (!isSummary(request)) expect(shapes(request).at(-1)).toBe("an observation");
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("keeps what the system said in the turn beside a summary, until a later turn has another one made", async () => {
    const at = world({ steps: 16, text: SPOKEN });
    await using host = at.host();
    const session = await host.createSession();
    await turn(host, session, [textMessage("system", "Mind the cat."), textMessage("user", "move about")]);
    const last = at.model.requests.at(-1)!;
    expect(last.messages.slice(1, 3).map((message) => `${message.role} ${messageText(message)}`)).toEqual([
      "user [Notes on the conversation so far, which is no longer shown:]\nThe user wants all of it.",
      "system Mind the cat.",
    ]);
    expect(last.messages.filter((message) => messageText(message) === "Mind the cat.")).toHaveLength(1);
    await turn(host, session, [textMessage("user", "and?")], ROOMY);
    const next = at.model.requests.at(-1)!;
    expect(next.messages.slice(0, last.messages.length)).toEqual(last.messages);
    expect(await at.checks(session)).toEqual(["same", "same"]);
  });

  it("comes to the same end wherever its host is killed", async () => {
    const whole = world({ steps: 6, text: SPOKEN });
    const calm = whole.host();
    const first = await calm.createSession();
    await turn(calm, first);
    const brief = async (host: TestHost, session: SessionUid) =>
      (await host.story(session)).filter((line) => line !== "USAGE").map((line) => line.replace(/observation\.[0-9a-f-]+/, "observation"));
    const story = await brief(calm, first);
    expect(story.some((line) => line.startsWith("LIFECYCLE"))).toBe(true);
    for (let atAppend = 2, dead = true; dead; atAppend += 1) {
      const at = world({ steps: 6, text: SPOKEN });
      const store = new DyingStore(at.journal, { atAppend, when: "after" });
      const dying = at.host({ journal: store.view(), hostId: "dying" });
      const session = await dying.createSession();
      await turn(dying, session);
      await dying[Symbol.asyncDispose]();
      dead = store.dead;
      at.ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
      await using host = at.host({ hostId: "next" });
      await resumed(host, session);
      expect(await brief(host, session)).toEqual(story);
      expect(await at.checks(session)).toEqual(["same"]);
    }
  });
});
