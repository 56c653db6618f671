import { describe, expect, it } from "vitest";
import { create, fromBinary } from "@bufbuild/protobuf";
import { SILENT_LOG, seqOf, type Seq, type SessionUid } from "../base/index.ts";
import { MessageSchema, PartSchema, ToolDefinitionSchema, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { RequestSketchSchema } from "../gen/holdfast/v1/beside_pb.ts";
import { messageText, textMessage, type Message, type ModelRequest } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { seededPorts, testHarness, TestHost, TestModel, TestTools, toolCall, type HarnessRun } from "../testing/index.ts";
import { rebuildRequest } from "./request-sketch.ts";

const tools = [create(ToolDefinitionSchema, { name: "look", description: "looks", inputSchema: { type: "object" } })];

/** A system prompt that no record has, the whole conversation, and tools. */
const converse: HarnessRun = async (start, sink) => {
  const messages: Message[] = [textMessage("system", "You are kind.")];
  for await (const page of start.history.read()) {
    for (const { body } of page.events) if (body.case === "message") messages.push(body.value);
  }
  messages.push(...start.inputs);
  const response = await sink.model({ model: "test", messages, tools });
  await sink.model({ model: "test", messages: [...messages, response.message], tools });
};

function setup(run: HarnessRun = converse) {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const model = new TestModel();
  const executor = new TestTools({ look: async ({ id }) => ({ output: { seen: id } }) });
  const newHost = (hostId: string) =>
    new TestHost({ journal, ports, harnesses: { test: testHarness(run) }, models: model, tools: executor, hostId });
  const rebuiltCalls = async (host: TestHost, session: SessionUid) => {
    const rebuilt = [];
    for (const { seq, event } of await host.records(session)) {
      if (event?.body.case !== "model") continue;
      rebuilt.push(await rebuildRequest(journal, ports.digest, { session, seq: seqOf(seq), recorded: event.body.value }));
    }
    return rebuilt;
  };
  return { journal, model, newHost, rebuiltCalls };
}

const texts = (request: ModelRequest | undefined) => request?.messages.map(messageText);

describe("what is kept of a model request", () => {
  it("rebuilds every request that was sent, whole by its recorded hash, across turns and hosts", async () => {
    const { model, newHost, rebuiltCalls } = setup();
    const first = newHost("first");
    const session = await first.createSession();
    for (const input of ["a", "b"]) await (await first.begin(session, [input])).outcome;
    const second = newHost("second");
    await (
      await second.begin(session, ["c"])
    ).outcome;
    const rebuilt = await rebuiltCalls(second, session);
    expect(rebuilt).toHaveLength(6);
    expect(rebuilt.every((call) => call?.whole === true)).toBe(true);
    expect(rebuilt.map((call) => texts(call?.request))).toEqual(model.requests.map(texts));
    expect(rebuilt.at(-1)?.request.tools).toEqual(tools);
  });

  it("costs what is new: a request that continues the last one names it, and recorded messages by their seq", async () => {
    const { journal, newHost } = setup();
    const host = newHost("a");
    const session = await host.createSession();
    const sizes: number[] = [];
    for (let turn = 0; turn < 30; turn++) {
      const { lastSeq } = await (await host.begin(session, ["x".repeat(500)])).outcome;
      for (const [, bytes] of await journal.readAsides({ session, fromSeq: (lastSeq - 5) as Seq })) sizes.push(bytes.length);
    }
    expect(Math.max(...sizes.slice(4))).toBeLessThan(40);
  });

  it("names the records of tool results, and has in full what no record has as it was sent", async () => {
    const { journal, newHost, rebuiltCalls } = setup(async (start, sink) => {
      const results = await Promise.all(["c1", "c2"].map((id) => sink.toolCall(toolCall("look", id))));
      const parts = results.map((value) => create(PartSchema, { part: { case: "toolResult", value } }));
      const asked = [...start.inputs, create(MessageSchema, { role: "tool", parts })];
      await sink.model({ model: "test", messages: asked });
      const renamed = create(ToolResultSchema, { ...results[0]!, id: "other" });
      const other = create(MessageSchema, { role: "tool", parts: [{ part: { case: "toolResult", value: renamed } }] });
      await sink.model({ model: "test", messages: [...asked, other] });
    });
    const host = newHost("a");
    const session = await host.createSession();
    await (
      await host.begin(session, ["go"])
    ).outcome;
    const asides = [...(await journal.readAsides({ session })).entries()].toSorted(([left], [right]) => left - right);
    const sketches = asides.filter(([seq]) => seq === 7 || seq === 9).map(([, bytes]) => fromBinary(RequestSketchSchema, bytes));
    expect(sketches.map(({ added }) => added.map(({ source }) => source.case))).toEqual([["seq", "results"], ["message"]]);
    const rebuilt = await rebuiltCalls(host, session);
    expect(rebuilt.map((call) => call?.whole)).toEqual([true, true]);
    const [tool] = rebuilt[0]!.request.messages.slice(-1);
    expect(tool?.parts.map(({ part }) => (part.case === "toolResult" ? [part.value.id, part.value.output] : []))).toEqual([
      ["c1", { seen: "c1" }],
      ["c2", { seen: "c2" }],
    ]);
  });

  it("is of the records that are there, also where a session's uid has come back with other ones", async () => {
    const { journal, newHost, rebuiltCalls } = setup(async (start, sink) => {
      if (messageText(start.inputs[0]!) !== "quiet") await converse(start, sink, { signal: new AbortController().signal });
    });
    const host = newHost("a");
    const session = await host.createSession();
    const turn = async (input: string) => void (await (await host.begin(session, [input])).outcome);
    await turn("a");
    await host.controller.delete(session, undefined);
    await journal.reclaim(session);
    await host.createSession({ uid: session });
    for (const input of ["quiet", "quiet", "quiet", "b"]) await turn(input);
    const rebuilt = await rebuiltCalls(host, session);
    expect(rebuilt.map((call) => call?.whole)).toEqual([true, true]);
    expect(texts(rebuilt[0]?.request)).toEqual(["You are kind.", "quiet", "quiet", "quiet", "b"]);
  });

  it("says so when a harness changed an object after it was given it", async () => {
    const { newHost, rebuiltCalls } = setup(async (start, sink) => {
      const [input] = start.inputs;
      if (input?.parts[0]?.part.case === "text") input.parts[0].part.value.text = "forged";
      await sink.model({ model: "test", messages: start.inputs });
    });
    const host = newHost("a");
    const session = await host.createSession();
    await (
      await host.begin(session, ["a"])
    ).outcome;
    expect((await rebuiltCalls(host, session))[0]).toMatchObject({ whole: false });
  });

  it("has a session's first request in full where no record has it", async () => {
    const { journal, newHost } = setup();
    const host = newHost("a");
    const session = await host.createSession();
    await (
      await host.begin(session, ["hi"])
    ).outcome;
    const aside = (await journal.readAsides({ session })).get(3 as Seq);
    const sketch = fromBinary(RequestSketchSchema, aside!);
    expect(sketch.baseSeq).toBe(0n);
    expect(sketch.added.map(({ source }) => source.case)).toEqual(["message", "seq"]);
    expect(sketch.tools).toEqual(tools);
  });
});
