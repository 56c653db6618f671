/**
 * A session never becomes unusable: whatever an agent went through and wherever its journal is cut, the request that its next turn begins with
 * is one that the providers accept, and every request on the way was. The rules are those of `model-rules.ts`; `model-server.test.ts` shows
 * that each of them can fail.
 */

import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deeplyFrozen, newSessionUid, seqOf, type SessionUid } from "../base/index.ts";
import { inputHash } from "../canon/index.ts";
import { MessageSchema, PartSchema, ToolCallSchema, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { HistoryFolds, type HistoryFold } from "../harnesses/agent/history-folds.ts";
import { RequestContext } from "../harnesses/agent/request-context.ts";
import { Conversation, createAgentHarness } from "../harnesses/index.ts";
import { anthropicRequestBody } from "../models/anthropic-request.ts";
import { googleRequest } from "../models/google-request.ts";
import { openAiRequestBody } from "../models/openai-request.ts";
import { responsesRequestBody } from "../models/responses-request.ts";
import { EventKind, messageText, textMessage, type Event, type History, type ModelRequest, type Start } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { AgentWorld, agentConfig, sayingModel, type Saying } from "./agent-world.ts";
import type { TestHost } from "./host.ts";
import { MODEL_PROTOCOLS, refusalOf, type ModelProtocol } from "./model-rules.ts";
import { testDigest } from "./ports.ts";
import { decide, resumed } from "./tool-world.ts";
import { TestTools } from "./tools.ts";

const BODIES: Readonly<Record<ModelProtocol, (request: ModelRequest) => object>> = {
  openai: (request) =>
    openAiRequestBody(request, { provider: "openai", modelPrefix: "", maxTokensField: "max_tokens", includeUsage: true }),
  responses: (request) => responsesRequestBody(request, { provider: "openai", modelPrefix: "" }),
  anthropic: (request) =>
    anthropicRequestBody({ ...request, params: { thinking_budget_tokens: "1024" } }, { modelPrefix: "", maxTokensDefault: 100 }),
  google: (request) => googleRequest(request, { modelPrefix: "" }).body,
};

/** Why a provider would refuse the request, if one would. */
function refusals(request: ModelRequest): string[] {
  inputHash(request, testDigest);
  return MODEL_PROTOCOLS.flatMap((protocol) => {
    const refusal = refusalOf(protocol, structuredClone(BODIES[protocol](request)));
    return refusal === undefined ? [] : [`${protocol}: ${refusal}`];
  });
}

const TOOLS: ConstructorParameters<typeof TestTools>[0] = {
  small: async () => ({ output: { ok: true } }),
  large: async () => ({ output: { text: "a long line of words. ".repeat(100) } }),
  fails: async () => ({ isError: true, error: "no such file" }),
  gated: async () => ({ output: { written: true } }),
  picky: {
    check: ({ args }) => (typeof args?.["n"] === "number" ? undefined : "n must be a number"),
    run: async () => ({ output: { ok: true } }),
  },
};
/** Sees something that is often large, and every so often nothing. */
const eyes = (): (typeof TOOLS)[string] => {
  let looks = 0;
  return async () => {
    looks += 1;
    if (looks % 11 === 0) return { isError: true, error: "dark" };
    return { output: { seen: "something of the world. ".repeat(looks % 3 === 0 ? 60 : 1) } };
  };
};
/** While it runs, somebody speaks to the turn. */
const disturbed =
  (speak: () => void): (typeof TOOLS)[string] =>
  async () => {
    speak();
    return { output: { ok: true } };
  };
const CONFIG = {
  steering: true,
  tools: { free: ["*"], ask: ["gated"], blocked: [{ tool: "eyes" }], pure: ["small", "large", "heard"] },
  system_prompt: "Be an agent.",
  max_steps: 6,
  context: { max_tokens: 1_000 },
  observation: { tool: "eyes" },
};

const call = fc.tuple(
  fc.constantFrom("small", "large", "large", "heard", "fails", "gated", "picky", "nothing", ""),
  fc.constantFrom("a", "b", "c", ""),
  fc.constantFrom({ n: 1 }, { n: "x" }, undefined),
);
const reasoning = fc.constantFrom(
  ["anthropic", `{"type":"thinking","thinking":"${"hm ".repeat(150)}","signature":"U2ln"}`] as const,
  ["openai", '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}'] as const,
  ["google", '{"thoughtSignature":"AAAA"}'] as const,
  undefined,
);
const acting: fc.Arbitrary<Saying> = fc.record({
  text: fc.constantFrom("", "I try.", "\ud83d\ude00 and half of one: \ud83d"),
  calls: fc.array(call, { minLength: 1, maxLength: 3 }),
  reasoning,
});
const answering: fc.Arbitrary<Saying> = fc.record({ text: fc.constantFrom("", "Done.", "words and words ".repeat(60)), reasoning });
const script = fc.array(fc.oneof({ weight: 3, arbitrary: acting }, { weight: 1, arbitrary: answering }), { minLength: 4, maxLength: 16 });
/** The mode of a turn, and what becomes of it where it waits. */
const mode = fc.constantFrom("react", "ooda_re_act", undefined);
const fate = fc.constantFrom("approve", "deny", "leave");
const fates = fc.array(fc.tuple(fate, mode), { minLength: 3, maxLength: 3 });
type Fates = readonly (readonly ["approve" | "deny" | "leave", "react" | "ooda_re_act" | undefined])[];

const isSummary = ({ messages }: ModelRequest): boolean => messageText(messages[0]!).startsWith("You keep the notes");

/** A session of an agent: three turns, each driven as far as it comes. */
async function lived(sayings: readonly Saying[], choices: Fates) {
  const model = sayingModel((request, index) =>
    isSummary(request) ? { text: `notes ${index}` } : (sayings[index] ?? { text: "Enough." }),
  );
  let speak = (): void => undefined;
  const openJournal = ({ clock, digest }: Parameters<typeof createMemoryStore>[0]) => createMemoryStore({ clock, digest });
  const world = new AgentWorld({
    openJournal,
    agent: createAgentHarness(),
    model,
    tools: new TestTools({ ...TOOLS, eyes: eyes(), heard: disturbed(() => speak()) }),
  });
  const host = world.host();
  const session = await host.createSession();
  const message = textMessage("user", "psst: something else");
  // One that the turn does not ask for any more is nobody's.
  speak = () => void host.controller.steer({ session, message, from: undefined }).catch(() => undefined);
  for (const [index, input] of ["first", "second ".repeat(100), "third"].entries()) {
    await liveTurn(host, session, input, choices[index % choices.length]!);
  }
  return { world, host, session, requests: model.requests };
}

async function liveTurn(host: TestHost, session: SessionUid, input: string, [choice, turnMode]: Fates[number]): Promise<void> {
  const config = agentConfig({ ...CONFIG, mode: turnMode });
  const inputs = [textMessage("system", "Mind the cat."), textMessage("user", input)];
  let outcome = await (await host.begin(session, [], { inputs, config })).outcome;
  // Several gated calls of one step are decided one by one; a turn may park more than once.
  for (let parks = 0; outcome.kind === "parked" && choice !== "leave" && parks < 20; parks += 1) {
    await decide(host, session, outcome.ref, choice === "approve");
    outcome = (await resumed(host, session)) ?? outcome;
  }
  if (outcome.kind === "parked") await host.controller.cancel({ session, executionId: "", reason: "USER" });
}

describe("the request that an agent begins its next turn with", () => {
  it("is accepted by every provider, wherever the journal is cut", async () => {
    const seen = { cuts: 0, unknown: 0, cleared: 0, notes: 0, reasoning: 0, heard: 0, observed: 0, forgotten: 0, told: 0, requests: 0 };
    await fc.assert(
      fc.asyncProperty(script, fates, async (sayings, choices) => {
        const { world, host, session, requests } = await lived(sayings, choices);
        for (const request of requests) expect(refusals(request)).toEqual([]);
        seen.requests += requests.length;
        expect(new Set(await world.checks(session))).toEqual(new Set(["same"]));
        const model = sayingModel(() => ({ text: "ok" }));
        const tools = new TestTools({ ...TOOLS, eyes: async () => ({ output: { seen: "what is there now" } }) });
        const other = world.host({ models: model, tools, hostId: "other" });
        const { lastSeq } = (await world.journal.get(session))!.projection;
        for (let seq = 1; seq <= lastSeq; seq += 1) {
          const uid = newSessionUid(world.ports);
          await host.controller.fork({ parent: session, atSeq: seqOf(seq), children: ({ seed }) => [{ ...seed, uid, name: "" }] });
          const before = model.requests.length;
          const config = agentConfig({ ...CONFIG, context: {}, mode: choices[seq % choices.length]![1] });
          const outcome = await (await other.begin(uid, ["and now?"], { config })).outcome;
          expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
          for (const request of model.requests.slice(before)) {
            expect(refusals(request)).toEqual([]);
            note(
              seen,
              JSON.stringify(request.messages, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value)),
            );
          }
          seen.cuts += 1;
        }
        await host[Symbol.asyncDispose]();
        await other[Symbol.asyncDispose]();
      }),
      { seed: 20261130, numRuns: 10, endOnFailure: true },
    );
    // The journals were such that everything that is special came up.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(20);
  });

  it("is what the journal before it says, at every model call of a session", async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(script, fates, async (sayings, choices) => {
        const { host, session, requests } = await lived(sayings, choices);
        const events = (await host.records(session)).map(({ event }) => event!);
        const calls = events.flatMap(({ kind }, index) => (kind === EventKind.EVENT_MODEL_CALL ? [index] : []));
        expect(calls).toHaveLength(requests.length);
        for (const [nth, index] of calls.entries()) {
          if (isSummary(requests[nth]!)) continue;
          const conversation = new Conversation();
          conversation.addPage({ firstSeq: seqOf(1), events: events.slice(0, index) });
          const context = new RequestContext("");
          context.update(conversation);
          expect(requests[nth]!.messages.slice(1)).toEqual(context.messages);
          compared += 1;
        }
        await host[Symbol.asyncDispose]();
      }),
      { seed: 7, numRuns: 60, endOnFailure: true },
    );
    expect(compared).toBeGreaterThan(300);
  });

  it("is the same whether the past is read anew or gone on from where an earlier turn left it", async () => {
    let gone = 0;
    await fc.assert(
      fc.asyncProperty(script, fates, fc.array(fc.nat(7), { minLength: 1, maxLength: 5 }), async (sayings, choices, strides) => {
        const { host, session } = await lived(sayings, choices);
        const events = (await host.records(session)).map(({ event }) => deeplyFrozen(event!));
        const folds = new HistoryFolds();
        for (let [seq, step] = [1, 0]; seq <= events.length; seq += 1 + strides[step++ % strides.length]!) {
          const past = events.slice(0, seq);
          const kept = await folds.read(pastOf(session, past), { system: "Help.", signal: NEVER });
          const anew = { conversation: new Conversation(), context: new RequestContext("Help.") };
          anew.conversation.addEvents(past);
          expect(seenOf(kept)).toEqual(seenOf(anew));
          // The turn that got it adds its own; the next one must not see that.
          for (const fold of [kept, anew]) goOn(fold, seq);
          expect(seenOf(kept)).toEqual(seenOf(anew));
          gone += 1;
        }
        await host[Symbol.asyncDispose]();
      }),
      { seed: 11, numRuns: 40, endOnFailure: true },
    );
    expect(gone).toBeGreaterThan(400);
  });

  it("would be refused if it were what the journal has of it and no more", async () => {
    const { host, session } = await lived([{ calls: [["small", "a", { n: 1 }]] }], [["leave", undefined]]);
    const conversation = new Conversation();
    const events = (await host.records(session)).map(({ event }) => event!);
    conversation.addPage({
      firstSeq: seqOf(1),
      events: events.slice(
        0,
        events.findIndex(({ body }) => body.case === "result"),
      ),
    });
    conversation.addInput(textMessage("user", "and now?"));
    const bare = conversation.entries.map(({ message }) => message);
    expect(refusals({ model: "m", messages: bare }).map((refusal) => refusal.split(":")[0])).toEqual(MODEL_PROTOCOLS);
    expect(refusals({ model: "m", messages: conversation.messages() })).toEqual([]);
    await host[Symbol.asyncDispose]();
  });
});

const NEVER = new AbortController().signal;

/** A history of frozen events, as a host hands them out. */
function pastOf(sessionUid: SessionUid, events: readonly Event[]): Pick<Start, "sessionUid" | "history"> {
  const read: History["read"] = async function* ({ fromSeq = seqOf(1) } = {}) {
    if (fromSeq <= events.length) yield { firstSeq: fromSeq, events: events.slice(fromSeq - 1) };
  };
  return { sessionUid, history: { lastSeq: seqOf(events.length), read } };
}

/** Everything that a turn finds in what it was given. */
function seenOf({ conversation, context }: HistoryFold): object {
  const { entries, baseline, summary } = conversation;
  context.update(conversation);
  const { messages, sizes, tokens } = context;
  return { entries, baseline, summary, messages, sizes, tokens };
}

/** A turn of the past: an input, answers to every call that has none, and calls of its own. */
function goOn({ conversation }: HistoryFold, seq: number): void {
  const open = conversation.entries.flatMap(({ calls }) => calls.filter(({ result }) => result === undefined));
  for (const { hostId } of open) conversation.addResult(create(ToolResultSchema, { id: hostId, output: { late: seq } }));
  conversation.beginTurn();
  conversation.addInput(textMessage("user", `and now? ${seq}`));
  const mine = create(ToolCallSchema, { id: "mine", tool: "small", args: { n: seq } });
  conversation.addOutput(
    create(MessageSchema, { role: "assistant", parts: [create(PartSchema, { part: { case: "toolCall", value: mine } })] }),
  );
  conversation.addBaseline({ ...conversation.baseline, results: conversation.entries.length });
}

type Special = "unknown" | "cleared" | "notes" | "reasoning" | "heard" | "observed" | "forgotten" | "told";

function note(seen: Record<Special, number>, text: string): void {
  if (text.includes("the outcome of this call is unknown")) seen.unknown += 1;
  if (text.includes("left out to save room")) seen.cleared += 1;
  if (text.includes("[Notes on the conversation")) seen.notes += 1;
  if (text.includes("psst")) seen.heard += 1;
  if (text.includes("something of the world")) seen.observed += 1;
  if (text.includes("An observation of how things stood")) seen.forgotten += 1;
  if (text.includes("Mind the cat.")) seen.told += 1;
  if (text.includes("opaqueBytes")) seen.reasoning += 1;
}
