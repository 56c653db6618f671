import { describe, expect, it, onTestFinished } from "vitest";
import { create } from "@bufbuild/protobuf";
import { SILENT_LOG } from "../base/index.ts";
import { MessageSchema, ToolCallSchema, ToolResultSchema, UsageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { Mediation, type Event, type Harness, type Message, type ModelChunk, type ToolResult } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { replaySession } from "./replay.ts";
import { harnessCatalog, seededPorts, testHarness, TestHost, TestModel, TestTools } from "../testing/index.ts";

const newFolder = (): string => {
  const folder = new TemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
};

/** What turns were given, and the history that each began with. */
interface Given {
  readonly contents: (Message | ToolResult)[];
  readonly histories: Event[][];
}

/** A harness that asks a model and a tool in every turn, and keeps what it is given. */
function keepingHarness(given: Given, readsOnly: boolean): Harness {
  const harness = testHarness(async (start, sink) => {
    const history: Event[] = [];
    for await (const { events } of start.history.read()) history.push(...events);
    given.histories.push(history);
    const { message } = await sink.model({ model: "test", messages: start.inputs });
    const call = { id: "c", tool: "look", mediation: Mediation.CONTROLLER_MEDIATED, idempotencyKey: `${start.executionId}/c` };
    given.contents.push(...start.inputs, message, await sink.toolCall(create(ToolCallSchema, call)));
  });
  return { ...harness, readsOnly };
}

/** Two turns of such a harness. */
async function twoTurns(readsOnly: boolean) {
  const ports = seededPorts();
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const given: Given = { contents: [], histories: [] };
  const harnesses = { test: keepingHarness(given, readsOnly) };
  await using host = new TestHost({
    journal,
    ports,
    harnesses,
    tools: new TestTools({ look: async ({ id }) => create(ToolResultSchema, { id, output: { seen: [id] } }) }),
  });
  const session = await host.createSession();
  for (const text of ["one", "two"]) {
    const turn = await host.begin(session, [text]);
    expect(await turn.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
  }
  const inHistory = given.histories[1]!.flatMap(({ body }) => (body.case === "message" || body.case === "result" ? [body.value] : []));
  return { ofFirstTurn: given.contents.slice(0, 3), inHistory };
}

describe("what a harness is given in a turn", () => {
  it("is what it has in its history later, the very objects, where it changes nothing", async () => {
    const { ofFirstTurn, inHistory } = await twoTurns(true);
    expect(ofFirstTurn.map((content) => inHistory.indexOf(content))).toEqual([0, 1, 2]);
    for (const content of ofFirstTurn) expect(Object.isFrozen(content)).toBe(true);
  });

  it("is its own otherwise: changing it changes nothing that is recorded", async () => {
    const { ofFirstTurn, inHistory } = await twoTurns(false);
    expect(ofFirstTurn).toEqual(inHistory);
    for (const content of ofFirstTurn) {
      expect(inHistory).not.toContain(content);
      expect(Object.isFrozen(content)).toBe(false);
    }
  });
});

/** A message with bytes in it. */
const thought = (): Message => {
  const opaque = { case: "opaqueBytes", value: Uint8Array.of(1, 2, 3) } as const;
  return create(MessageSchema, { role: "assistant", parts: [{ part: { case: "reasoning", value: { opaque } } }] });
};
const thinking = (): ModelChunk => ({ kind: "completed", response: { message: thought(), usage: create(UsageSchema) }, facts: {} });

const opaqueIn = (message: Message): Uint8Array | undefined => {
  const part = message.parts[0]?.part;
  return part?.case === "reasoning" && part.value.opaque.case === "opaqueBytes" ? part.value.opaque.value : undefined;
};

describe.each([
  ["memory", createMemoryStore],
  ["SQLite", (parts: Parameters<typeof createMemoryStore>[0]) => openSqliteStore({ ...parts, folder: newFolder() })],
] as const)("bytes that a harness changes which says that it changes nothing, over %s", (_, openJournal) => {
  it("are in no record: neither what it was given in its turn, nor what it has read of its history", async () => {
    const ports = seededPorts();
    const journal = await openJournal({ ...ports, log: SILENT_LOG });
    const lying = testHarness(async (start, sink) => {
      for await (const { events } of start.history.read()) {
        for (const { body } of events) if (body.case === "message") opaqueIn(body.value)?.fill(9);
      }
      const { message } = await sink.model({ model: "test", messages: start.inputs });
      opaqueIn(message)!.fill(9);
    });
    const models = new TestModel(async function* () {
      yield thinking();
    });
    const newHost = (hostId: string) =>
      new TestHost({ journal, ports, models, hostId, harnesses: { test: { ...lying, readsOnly: true } } });
    await using first = newHost("first");
    const session = await first.createSession();
    for (let turn = 0; turn < 2; turn++) await (await first.begin(session, ["go"])).outcome;
    // Another one reads the journal anew.
    await using second = newHost("second");
    await (
      await second.begin(session, ["go"])
    ).outcome;
    const recorded = (await second.records(session)).flatMap(({ event }) => (event?.body.case === "message" ? [event.body.value] : []));
    const opaque = recorded.map(opaqueIn).filter((bytes) => bytes !== undefined);
    expect(opaque.map((bytes) => [...bytes])).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 2, 3],
    ]);
  });

  it("are in no record, when its turn is taken up again and when it is replayed", async () => {
    const ports = seededPorts();
    const journal = await openJournal({ ...ports, log: SILENT_LOG });
    let isCrashed = false;
    const harness: Harness = {
      readsOnly: true,
      ...testHarness(async (start, sink) => {
        opaqueIn(start.inputs[0]!)!.fill(9);
        await sink.output("heard");
        if (!isCrashed) throw new Error("it crashes once, after it was heard");
      }),
    };
    await using host = new TestHost({ journal, ports, harnesses: { test: harness } });
    const session = await host.createSession();
    await (
      await host.begin(session, [], { inputs: [thought()] })
    ).outcome;
    isCrashed = true;
    const { turn } = await host.controller.resume(session, undefined);
    expect(await turn?.outcome).toMatchObject({ state: "COMPLETED" });
    const row = await journal.get(session);
    const checks = await Array.fromAsync(replaySession({ journal, ports, harnesses: harnessCatalog({ test: harness }) }, { row: row! }));
    expect(checks.map(({ outcome }) => outcome.kind)).toEqual(["same"]);
    const [input] = (await host.records(session)).flatMap(({ event }) => (event?.body.case === "message" ? [event.body.value] : []));
    expect([...opaqueIn(input!)!]).toEqual([1, 2, 3]);
  });
});
