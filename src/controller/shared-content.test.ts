import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { SILENT_LOG } from "../base/index.ts";
import { ToolCallSchema, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { Mediation, type Event, type Harness, type Message, type ToolResult } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { seededPorts, testHarness, TestHost, TestTools } from "../testing/index.ts";

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
