/**
 * The prompt cache's ground: the messages of turn n are, byte for byte, how those of turn n + 1 begin. With every provider, over a session of the
 * chat harness, of one that offers tools, and of an agent that observes before each step and is told something by the system in each turn; in a
 * real file, across a restart on another host, and in a fork.
 */

import { create, fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { newSessionUid, SILENT_LOG, type Seq, type SessionUid } from "../base/index.ts";
import { EventKind, ToolDefinitionSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { ModelFactsSchema } from "../gen/holdfast/v1/beside_pb.ts";
import { Conversation, createAgentHarness, createChatHarness } from "../harnesses/index.ts";
import {
  createAnthropicProvider,
  createGoogleProvider,
  createModelCatalog,
  createOpenAiProvider,
  createServedModels,
} from "../models/index.ts";
import { textMessage, type ModelCatalog, type ModelProvider, type ModelRequest } from "../spi/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { emptySeed, testHarness, TestHost } from "./host.ts";
import { MODEL_PROTOCOLS, type ModelProtocol } from "./model-rules.ts";
import { startModelServer, type ModelReply, type ModelServer, type RecordedModelRequest, type StreamStep } from "./model-server.ts";
import { googleChunk, googleEnd, googleText } from "./model-streams-google.ts";
import { responsesCall, responsesEnd, responsesReasoning, responsesStart, responsesText } from "./model-streams-responses.ts";
import { anthropicBlock, anthropicEnd, anthropicStart, anthropicText, openAiChunk, openAiEnd, openAiText } from "./model-streams.ts";
import { SeededRandom, seededPorts } from "./ports.ts";
import { RecordingClock } from "./recording-clock.ts";
import { TemporaryFolder } from "./temporary-folder.ts";
import { TestTools } from "./tools.ts";

const MODELS: Readonly<Record<ModelProtocol, string>> = {
  openai: "llama",
  responses: "gpt-x",
  anthropic: "claude-x",
  google: "gemini-3-x",
};
const TURNS = 20;

/** The provider of a protocol at the test server. */
function providerOf(protocol: ModelProtocol, server: ModelServer): ModelProvider {
  const options = { apiKey: "k", clock: new RecordingClock(), random: new SeededRandom(1) };
  switch (protocol) {
    case "openai":
    case "responses":
      return createOpenAiProvider({ ...options, baseUrl: server.openAiBaseUrl, api: protocol === "openai" ? "chat" : "responses" });
    case "anthropic":
      return createAnthropicProvider({ ...options, baseUrl: server.anthropicBaseUrl });
    case "google":
      return createGoogleProvider({ ...options, baseUrl: server.googleBaseUrl });
  }
}

const sealed = (n: number): string => Buffer.from(`sealed ${n} ÿ`).toString("base64");

/** An answer with reasoning and words, and with a call in every fourth. */
const ANSWERS: Readonly<Record<ModelProtocol, (n: number, calls: boolean) => readonly StreamStep[]>> = {
  openai: (n, calls) => {
    const call = { index: 0, id: `call_${n}`, type: "function", function: { name: "read", arguments: '{"b": 1, "a": [1.50]}' } };
    return [
      ...openAiText(`answer ${n} "é"`),
      ...(calls ? [openAiChunk({ tool_calls: [call] })] : []),
      ...openAiEnd(calls ? "tool_calls" : "stop"),
    ];
  },
  responses: (n, calls) => [
    ...responsesStart(),
    ...responsesReasoning(0, { id: `rs_${n}`, type: "reasoning", summary: [], encrypted_content: sealed(n) } as { id: string }),
    ...responsesText(1, [`answer ${n}`], { id: `msg_${n}`, phase: "final_answer" }),
    ...(calls ? responsesCall(2, `call_${n}`, "read", ['{"b": 1, "a": [1.50]}']) : []),
    ...responsesEnd(),
  ],
  anthropic: (n, calls) => [
    ...anthropicStart(),
    ...anthropicBlock(0, { type: "thinking", thinking: "", signature: "" }, [
      { type: "thinking_delta", thinking: "<hm> \u2028" },
      { type: "signature_delta", signature: sealed(n) },
    ]),
    ...anthropicText(1, `answer ${n} `),
    ...(calls
      ? anthropicBlock(2, { type: "tool_use", id: `toolu_${n}`, name: "read", input: {} }, [
          { type: "input_json_delta", partial_json: '{"b": 1, "a": [1.50]}' },
        ])
      : []),
    ...anthropicEnd(calls ? "tool_use" : "end_turn"),
  ],
  google: (n, calls) => [
    googleChunk([{ text: "hm", thought: true }]),
    ...googleText(`answer ${n}`),
    ...(calls ? [googleChunk([{ functionCall: { name: "read", args: { b: 1, a: [1.5] } }, thoughtSignature: sealed(n) }])] : []),
    ...(calls ? [] : [googleChunk([{ text: "", thoughtSignature: sealed(n) }])]),
    ...googleEnd(),
  ],
};

/** The messages of a request as they stand in its body, without the bracket that closes their list. */
function openList(request: RecordedModelRequest): string {
  const { messages, input, contents } = request.json as Readonly<Record<string, unknown>>;
  const list = JSON.stringify(messages ?? input ?? contents);
  expect(new TextDecoder().decode(request.body)).toContain(list);
  return list.slice(0, -1);
}

/** All else in a body. */
function surroundings(request: RecordedModelRequest): string {
  const { messages: _messages, input: _input, contents: _contents, ...others } = request.json as Readonly<Record<string, unknown>>;
  return JSON.stringify(others);
}

interface Life extends AsyncDisposable {
  readonly host: TestHost;
  turn(session: SessionUid, text: string): Promise<void>;
}

const TOOLS = ["write", "read", "ask"].map((name) =>
  create(ToolDefinitionSchema, {
    name,
    description: `To ${name}.`,
    inputSchema: { type: "object", properties: { z: { type: "string" }, a: {} } },
  }),
);

/** Asks as the chat harness does, and offers tools that it never runs: what they did is unknown in the next turn. */
const offering = testHarness(async (start, sink) => {
  const conversation = new Conversation();
  for await (const page of start.history.read()) conversation.addPage(page);
  for (const input of start.inputs) conversation.addInput(input);
  const { usage } = await sink.model({ model: start.model, messages: conversation.messages(), tools: TOOLS });
  await sink.usage(usage);
});
const HARNESSES = { chat: createChatHarness(), offering, observing: createAgentHarness() };
const OBSERVING = {
  mode: "ooda_re_act",
  observation: { tool: "eyes" },
  tools: { free: ["*"], blocked: [{ tool: "eyes" }], pure: ["ask"] },
};

interface Where {
  readonly folder: string;
  readonly hostId: string;
  readonly harness: keyof typeof HARNESSES;
  readonly models: ModelCatalog;
  readonly ports: ReturnType<typeof seededPorts>;
}

/** Tools, and eyes that see something else each time. */
function worldly(): TestTools {
  let looks = 0;
  const run = async () => ({ output: { done: true } });
  return new TestTools({ write: run, read: run, ask: run, eyes: async () => ({ output: { seen: `<${(looks += 1)}> "é"` } }) });
}

/** A host over the journal in a folder. */
async function live({ folder, hostId, harness, models, ports }: Where): Promise<Life> {
  const { clock, digest } = ports;
  const journal = await openSqliteStore({ folder, clock, digest, log: SILENT_LOG });
  const host = new TestHost({ journal, ports, hostId, models, harnesses: { test: HARNESSES[harness] }, tools: worldly() });
  const more = harness === "observing" ? OBSERVING : {};
  const config = new TextEncoder().encode(JSON.stringify({ system_prompt: "Be <brief> & kind.", ...more }));
  const inputsOf = (text: string) => (harness === "observing" ? [textMessage("system", `Mind ${text}.`)] : []);
  return {
    host,
    turn: async (session, text) => {
      const inputs = [...inputsOf(text), textMessage("user", text)];
      const outcome = await (await host.begin(session, [], { inputs, config })).outcome;
      expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    },
    [Symbol.asyncDispose]: async () => {
      await host[Symbol.asyncDispose]();
      await journal[Symbol.asyncDispose]();
    },
  };
}

describe.each(MODEL_PROTOCOLS)("the requests of a session with %s", (protocol) => {
  it.each(["chat", "offering", "observing"] as const)(
    "begin with the bytes of the request before, in turns, after a restart and in a fork: %s",
    async (harness) => {
      let answered = 0;
      const fallback = (): ModelReply => ({
        kind: "stream",
        steps: ANSWERS[protocol](++answered, harness !== "chat" && answered % 4 === 0),
      });
      await using server = await startModelServer({ fallback });
      const model = MODELS[protocol];
      const catalog = createModelCatalog({ routes: [{ match: model, provider: providerOf(protocol, server) }] });
      const prices = [{ match: model, value: { input: 1, output: 2 } }];
      const models = () => createServedModels({ catalog, clock: new RecordingClock(), prices });
      using folder = new TemporaryFolder();
      const ports = seededPorts();
      let session: SessionUid;
      {
        await using first = await live({ folder: folder.path, hostId: "one", harness, models: models(), ports });
        session = await first.host.createSession({ model });
        for (let turn = 1; turn <= TURNS / 2; turn++) await first.turn(session, `question ${turn}`);
      }
      await using second = await live({ folder: folder.path, hostId: "two", harness, models: models(), ports });
      for (let turn = TURNS / 2 + 1; turn <= TURNS; turn++) await second.turn(session, `question ${turn}`);
      const [child] = await second.host.controller.fork({
        parent: session,
        atSeq: 0 as Seq,
        children: () => [{ ...emptySeed(newSessionUid(ports), ports.clock.nowMs()), model }],
      });
      const forked = server.requests.length;
      await second.turn(child!.seed.uid, "and in the fork?");
      const back = server.requests.length;
      await second.turn(session, "and in the parent?");

      const { requests } = server;
      expect(requests.map(({ protocol: spoken, refusal }) => [spoken, refusal])).toEqual(requests.map(() => [protocol, undefined]));
      // Whoever has tools run is asked once more for each call.
      expect(requests).toHaveLength(harness === "observing" ? answered : TURNS + 2);
      expect(answered).toBeGreaterThanOrEqual(TURNS + 2);
      const lists = requests.map(openList);
      // The parent's next request follows the one before the fork's.
      const before = (index: number) => (index === back ? forked - 1 : index - 1);
      for (let index = 1; index < lists.length; index++) {
        expect(lists[index]!.startsWith(lists[before(index)]!)).toBe(true);
        expect(lists[index]!.length).toBeGreaterThan(lists[before(index)]!.length);
      }
      expect(new Set(requests.map(surroundings)).size).toBe(1);
      // What the provider sealed is in the last request for each answer that had it.
      if (harness === "observing") expect(lists.at(-1)!.split("Observation of how").length).toBeGreaterThan(TURNS + 5);
      if (protocol !== "openai") for (let n = 1; n <= TURNS; n++) expect(lists.at(-1)).toContain(JSON.stringify(sealed(n)));

      const records = await second.host.records(session);
      const output = records.find(({ event }) => event?.kind === EventKind.EVENT_OUTPUT);
      const beside = (await second.host.journal.readAsides({ session })).get(Number(output?.seq) as Seq);
      const { name } = catalog.providerOf(model)!;
      expect(fromBinary(ModelFactsSchema, beside!)).toMatchObject({ model, provider: name, attempts: 1, costNanoDollars: 13_000n });
    },
  );

  it("have their tools in the order in which they are offered, and the same bytes for the same tools", async () => {
    await using server = await startModelServer();
    const provider = providerOf(protocol, server);
    const said = [textMessage("user", "a"), textMessage("assistant", "b"), textMessage("user", "c")];
    for (const messages of [said.slice(0, 1), said]) {
      const request: ModelRequest = { model: MODELS[protocol], messages, tools: TOOLS };
      for await (const _ of provider.complete(request, { signal: new AbortController().signal })) continue;
    }
    const [first, second] = server.requests.map((request) => JSON.stringify((request.json as { tools: unknown }).tools));
    expect(second).toBe(first);
    expect(first?.match(/"name":"\w+"/g)).toEqual(['"name":"write"', '"name":"read"', '"name":"ask"']);
    expect(openList(server.requests[1]!).startsWith(openList(server.requests[0]!))).toBe(true);
  });

  it("would not begin so if anything before their end were changed", async () => {
    await using server = await startModelServer();
    const provider = providerOf(protocol, server);
    const said = [textMessage("user", "at 10:01"), textMessage("assistant", "b"), textMessage("user", "c")];
    for (const messages of [[textMessage("user", "at 10:00")], said]) {
      for await (const _ of provider.complete({ model: MODELS[protocol], messages }, { signal: new AbortController().signal })) continue;
    }
    expect(openList(server.requests[1]!).startsWith(openList(server.requests[0]!))).toBe(false);
  });
});
