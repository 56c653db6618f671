import { describe, expect, it } from "vitest";
import { CONTROLLER_LIMITS } from "../../controller/index.ts";
import { baselineAccount, messageText, type ModelRequest } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { AgentWorld, agentConfig, DyingStore, resumed, sayingModel, TestTools, type Saying } from "../../testing/index.ts";
import { createAgentHarness } from "./index.ts";

/** An agent whose context is so small that it has to make room, and tools with much to say. */
const CONFIG = agentConfig({ system_prompt: "Be an agent.", tools: { free: ["*"] }, context: { max_tokens: 1_000 } });
const LONG = "words and more words, ".repeat(60);

const isSummary = ({ messages }: ModelRequest): boolean => messageText(messages[0]!).startsWith("You keep the notes");

function world(script: (step: number) => Saying) {
  const tools = new TestTools({
    look: { idempotent: true, run: async (call) => ({ output: { at: call.id, text: LONG } }) },
  });
  // What it says depends on what it was asked, not on how often: a crash asks it again.
  const model = sayingModel((request) => (isSummary(request) ? { text: "The user wants all of it." } : script(stepOf(request))));
  const openJournal = ({ clock, digest }: Parameters<typeof createMemoryStore>[0]) => createMemoryStore({ clock, digest });
  return { tools, at: new AgentWorld({ openJournal, agent: createAgentHarness(), model, tools }) };
}

/** The number in the last call of a request, which the script counts on from. */
function stepOf({ messages }: ModelRequest): number {
  const ids = messages.flatMap(({ parts }) =>
    parts.flatMap(({ part }) => (part.case === "toolCall" ? [Number(part.value.id.slice(1))] : [])),
  );
  return Math.max(-1, ...ids) + 1;
}

const looking =
  (steps: number, text = "") =>
  (step: number): Saying =>
    step < steps ? { text, calls: [["look", `c${step}`, { n: step }]] } : { text: "done" };

const accounts = (events: Awaited<ReturnType<AgentWorld["events"]>>) =>
  events.flatMap((event) => {
    const account = baselineAccount(event);
    return account === undefined ? [] : [JSON.parse(account) as unknown];
  });

/** A crash between a completion and its usage loses the usage. */
const without = (story: readonly string[]) => story.filter((line) => line !== "USAGE");

const texts = (request: ModelRequest) =>
  request.messages.map(({ role, parts }) => {
    const [part] = parts;
    if (part?.part.case !== "toolResult")
      return `${role} ${messageText({ $typeName: "agentsessions.v1.Message", role, parts }).slice(0, 40)}`;
    const [content] = part.part.value.content;
    return `result ${content?.part.case === "text" ? content.part.value.text.slice(0, 20) : "whole"}`;
  });

describe("an agent whose request grows too large", () => {
  it("leaves out old results, says so in the journal, and goes on from there in the next turn", async () => {
    const { at } = world(looking(10));
    const config = agentConfig({ tools: { free: ["*"] }, context: { max_tokens: 2_500 } });
    await using host = at.host();
    const session = await host.createSession();
    expect(await (await host.begin(session, ["look around"], { config })).outcome).toMatchObject({ state: "COMPLETED" });
    const events = await at.events(host, session);
    expect(accounts(events)).toEqual([
      { results: 5, reasoning: 0, summary: 0 },
      { results: 8, reasoning: 0, summary: 0 },
    ]);
    const last = at.model.requests.at(-1)!;
    expect(texts(last).filter((line) => line.startsWith("result"))).toEqual([
      ...Array<string>(7).fill("result [this result was lef"),
      ...Array<string>(3).fill("result whole"),
    ]);
    // The journal has them all.
    expect(events.filter(({ body }) => body.case === "result" && body.value.output?.["text"] === LONG)).toHaveLength(10);
    await (
      await host.begin(session, ["and?"], { config })
    ).outcome;
    expect(at.model.requests.at(-1)!.messages.slice(0, last.messages.length)).toEqual(last.messages);
    expect(await at.checks(session)).toEqual(["same", "same"]);
  });

  it("has a summary made where results are not enough, and sends that in place of what is old", async () => {
    const { at } = world(looking(6, "I am going to look, and I say so at length. ".repeat(12)));
    await using host = at.host();
    const session = await host.createSession();
    expect(await (await host.begin(session, ["look around"], { config: CONFIG })).outcome).toMatchObject({ state: "COMPLETED" });
    const summaries = at.model.requests.filter(isSummary);
    expect(summaries.length).toBeGreaterThan(0);
    expect(messageText(summaries[0]!.messages[1]!)).toContain("user: look around");
    expect(summaries[0]!.tools).toBeUndefined();
    const last = at.model.requests.at(-1)!;
    expect(texts(last).slice(0, 2)).toEqual(["system Be an agent.", "user [Notes on the conversation so far, which"]);
    expect(messageText(last.messages[1]!)).toContain("The user wants all of it.");
    await (
      await host.begin(session, ["and?"], { config: CONFIG })
    ).outcome;
    expect(at.model.requests.at(-1)!.messages.slice(0, last.messages.length)).toEqual(last.messages);
    expect(await at.checks(session)).toEqual(["same", "same"]);
  });

  it("comes to the same end wherever its host is killed", async () => {
    const script = looking(5, "I am going to look, and I say so at length. ".repeat(12));
    const whole = world(script);
    const calm = whole.at.host();
    const first = await calm.createSession();
    await (
      await calm.begin(first, ["look around"], { config: CONFIG })
    ).outcome;
    const story = without(await calm.story(first));
    expect(story.some((line) => line.startsWith("LIFECYCLE 4"))).toBe(true);
    let deaths = 0;
    for (let atAppend = 2, dead = true; dead; atAppend += 1) {
      for (const when of ["before", "after"] as const) {
        const { at, tools } = world(script);
        const store = new DyingStore(at.journal, { atAppend, when });
        const dying = at.host({ journal: store.view(), hostId: "dying" });
        const session = await dying.createSession();
        await (
          await dying.begin(session, ["look around"], { config: CONFIG })
        ).outcome;
        await dying[Symbol.asyncDispose]();
        dead = store.dead;
        deaths += dead ? 1 : 0;
        at.ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
        await using host = at.host({ hostId: "next" });
        await resumed(host, session);
        expect(without(await host.story(session))).toEqual(story);
        expect(await at.checks(session)).toEqual(["same"]);
        expect(new Set(tools.ran).size).toBe(5);
      }
    }
    expect(deaths).toBeGreaterThan(20);
  });

  it("is as before where a summary was announced and never made", async () => {
    const { at } = world(looking(6, "I am going to look, and I say so at length. ".repeat(12)));
    await using host = at.host();
    const session = await host.createSession();
    await (
      await host.begin(session, ["look around"], { config: CONFIG })
    ).outcome;
    const events = await at.events(host, session);
    const announced = events.findIndex(
      (event) => (JSON.parse(baselineAccount(event) ?? '{"summary":0}') as { summary: number }).summary > 0,
    );
    const [child] = await host.controller.fork({
      parent: session,
      atSeq: (announced + 1) as Parameters<typeof host.controller.fork>[0]["atSeq"],
      children: ({ seed }) => [{ ...seed, uid: `${seed.uid}x` as typeof seed.uid }],
    });
    await (
      await host.begin(child!.seed.uid, ["go on"], { config: agentConfig({ system_prompt: "Be an agent." }) })
    ).outcome;
    expect(texts(at.model.requests.at(-1)!).slice(0, 2)).toEqual(["system Be an agent.", "user look around"]);
  });
});
