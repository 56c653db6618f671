import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { executionIdOf, seqOf, sessionUidOf } from "../base/ids.ts";
import { EventSchema, type Event } from "../gen/agentsessions/v1/common_pb.ts";
import { Resumability } from "../gen/agentsessions/v1/harness_pb.ts";
import { createEchoProvider } from "../models/echo.ts";
import { EventKind, HarnessFailure, textMessage, type HistoryPage, type Message, type ModelRequest, type Start } from "../spi/index.ts";
import { createRecordingSink } from "../testing/recording-sink.ts";
import { createChatHarness } from "./chat.ts";

const signal = new AbortController().signal;
const input = (text: string): Event =>
  create(EventSchema, { kind: EventKind.EVENT_INPUT, body: { case: "message", value: textMessage("user", text) } });
const output = (text: string): Event =>
  create(EventSchema, { kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: textMessage("assistant", text) } });

interface Turn {
  readonly history?: readonly Event[];
  readonly inputs?: readonly Message[];
  readonly config?: unknown;
  readonly model?: string;
}

async function* pagesOf(events: readonly Event[]): AsyncGenerator<HistoryPage> {
  for (const [index, event] of events.entries()) yield { firstSeq: seqOf(index + 1), events: [event] };
}

function startOf(turn: Turn): Start {
  const { history = [], config } = turn;
  const bytes = config instanceof Uint8Array ? config : new TextEncoder().encode(config === undefined ? "" : JSON.stringify(config));
  return {
    executionId: executionIdOf("e"),
    sessionUid: sessionUidOf("s"),
    config: bytes,
    history: { lastSeq: seqOf(history.length), read: () => pagesOf(history) },
    inputs: turn.inputs ?? [],
    identity: {},
    resumeFromSeq: 0n,
    model: turn.model ?? "gpt-x",
  };
}

async function effectsOf(turn: Turn) {
  const sink = createRecordingSink({ model: createEchoProvider() });
  await createChatHarness().run(startOf(turn), sink, { signal });
  return sink.effects;
}

async function requestOf(turn: Turn): Promise<ModelRequest> {
  const [first] = await effectsOf(turn);
  if (first?.kind !== "model") throw new Error("no model call");
  return first.request;
}

async function failureOf(turn: Turn): Promise<HarnessFailure> {
  const error: unknown = await effectsOf(turn).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HarnessFailure);
  return error as HarnessFailure;
}

const hi = [textMessage("user", "hi")];

describe("the chat harness", () => {
  it("says what it is", async () => {
    const { id, version, models, tools, capabilities } = await createChatHarness().describe();
    expect({ id, version, models, tools }).toEqual({ id: "chat", version: "1", models: [], tools: [] });
    expect(capabilities).toMatchObject({
      resumability: Resumability.STATELESS_REPLAY,
      forkSafe: true,
      streaming: true,
      reasoningReplay: true,
    });
  });

  it("asks the model once, with the whole conversation, and records what it cost", async () => {
    const effects = await effectsOf({ history: [input("one"), output("1"), input("two")], inputs: hi });
    expect(effects.map(({ kind }) => kind)).toEqual(["model", "usage"]);
    expect(effects[0]).toMatchObject({
      kind: "model",
      request: {
        model: "gpt-x",
        messages: [textMessage("user", "one"), textMessage("assistant", "1"), textMessage("user", "two"), textMessage("user", "hi")],
      },
    });
  });

  it("asks nothing more than it was told to", async () => {
    expect(await requestOf({ inputs: hi })).toStrictEqual({ model: "gpt-x", messages: hi });
    expect(await requestOf({ inputs: hi, config: {} })).toStrictEqual({ model: "gpt-x", messages: hi });
  });

  it("takes a system prompt, a model and params from its config", async () => {
    const config = {
      system_prompt: "Be brief.",
      model: "claude-x",
      params: { max_tokens: 50, temperature: "0.5", parallel_tool_calls: false },
    };
    expect(await requestOf({ inputs: hi, config })).toStrictEqual({
      model: "claude-x",
      messages: [textMessage("system", "Be brief."), ...hi],
      params: { max_tokens: "50", temperature: "0.5", parallel_tool_calls: "false" },
    });
  });

  describe("in a turn without inputs", () => {
    it("answers what a failed turn left unanswered", async () => {
      expect((await requestOf({ history: [input("one"), output("1"), input("two")] })).messages).toHaveLength(3);
    });

    it.each<[string, Turn]>([
      ["when nothing was said", {}],
      ["when the last word is the assistant's", { history: [input("one"), output("1")] }],
      ["when an input says nothing", { inputs: [textMessage("user", "")] }],
      ["when there is a system message only", { inputs: [textMessage("system", "rules")], config: { system_prompt: "more" } }],
    ])("completes without a model call %s", async (_when, turn) => {
      expect(await effectsOf(turn)).toEqual([]);
    });
  });

  it("lets an input in the assistant's words be continued", async () => {
    expect((await requestOf({ inputs: [...hi, textMessage("assistant", "Well,")] })).messages).toHaveLength(2);
  });

  describe("ends its turn FAILED", () => {
    it("without a model, and says where to set one", async () => {
      expect(await failureOf({ inputs: hi, model: "" })).toMatchObject({
        grpcCode: 9,
        message: "model: none is set; set the session's model, or model in the turn's config",
      });
    });

    it.each<[string, unknown, string]>([
      ["is no JSON", Uint8Array.of(0x7b), "config: must be a JSON object in UTF-8"],
      ["is no UTF-8", Uint8Array.of(0x22, 0xff, 0x22), "config: must be a JSON object in UTF-8"],
      ["is no object", ["x"], "config: must be a JSON object in UTF-8"],
      ["has a key that is not known", { sytem_prompt: "x" }, "config.sytem_prompt: is not known; known are system_prompt, model, params"],
      ["has a key that is no name", { "\ud800": 1 }, "config: is not known; known are system_prompt, model, params"],
      ["has a key of another type", { system_prompt: 5 }, "config.system_prompt: must be a string"],
      ["has a lone surrogate", { system_prompt: "\ud800" }, "config.system_prompt: must be a string"],
      ["has params that are none", { params: "hot" }, "config.params: must be an object of strings, numbers and booleans"],
      ["has a param of another type", { params: { stop: ["a"] } }, "config.params.stop: must be a string, a number or a boolean"],
    ])("with a config that %s", async (_what, config, message) => {
      expect(await failureOf({ inputs: hi, config })).toMatchObject({ grpcCode: 3, message });
    });
  });

  it("passes on what the model call fails with, so that the turn can be resumed", async () => {
    const run = createChatHarness().run(startOf({ inputs: hi }), createRecordingSink(), { signal });
    await expect(run).rejects.toMatchObject({ code: "failed_precondition" });
    await expect(run).rejects.not.toBeInstanceOf(HarnessFailure);
  });
});
