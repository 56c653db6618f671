import { describe, expect, it } from "vitest";
import { messageText } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { AgentWorld, sayingModel, TestTools, type Saying } from "../../testing/index.ts";
import { testDigest } from "../../testing/ports.ts";
import { compileSchema } from "../../tools/index.ts";
import { createDefinedAgent, type AgentDefinition, type SchemaCompiler } from "./index.ts";

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };
const DEFINITION = { system_prompt: "Count.", tools: { free: ["*"] }, answer: { schema } };
const ANSWER = { unfit: "it does not fit the schema", whole: "it" };

const compile: SchemaCompiler = (given, field) => compileSchema(given, field, ANSWER);

async function turn(sayings: readonly Saying[], definition: AgentDefinition = DEFINITION) {
  const options = {
    digest: testDigest,
    at: "agents.counter",
    compile,
  };
  const world = new AgentWorld({
    openJournal: ({ clock, digest }) => createMemoryStore({ clock, digest }),
    agent: createDefinedAgent("counter", definition, options),
    model: sayingModel((_, index) => sayings[index] ?? { text: "too many" }),
    tools: new TestTools({ look: async () => ({ output: { n: 3 } }) }),
  });
  await using host = world.host();
  const session = await host.createSession();
  const outcome = await (await host.begin(session, ["How many?"])).outcome;
  const { body } = (await host.records(session)).at(-1)!.event!;
  return {
    world,
    outcome,
    end: body.value,
    checks: await world.checks(session),
    said: world.model.requests.map(({ messages }) => messages.map(messageText)),
  };
}

describe("an agent whose answers have a form", () => {
  it("tells the model of it, behind its instructions", async () => {
    const { outcome, said, checks } = await turn([{ calls: [["look", "a", {}]] }, { text: '{"n":3}' }]);
    expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(said[0]).toEqual([
      `Count.\n\nWhen you are done, answer with one JSON value that fits this JSON Schema, and with nothing else:\n${JSON.stringify(schema)}`,
      "How many?",
    ]);
    expect(said).toHaveLength(2);
    expect(checks).toEqual(["same"]);
  });

  it.each([
    ["three", "it is not JSON and nothing else"],
    ['```json\n{"n":3}\n```', "it is not JSON and nothing else"],
    ['{"n":"3"}', "it does not fit the schema: n must be integer"],
    ["{}", "it does not fit the schema: it must have required property 'n'"],
  ])("has an answer of another form made once more: %s", async (text, fault) => {
    const { outcome, said, checks } = await turn([{ text }, { text: '{"n":3}' }]);
    expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(said[1]!.slice(-2)).toEqual([
      text,
      `Your answer is not of the form that was asked for: ${fault}. Give the whole answer again, as JSON and nothing else.`,
    ]);
    expect(checks).toEqual(["same"]);
  });

  it.each<Saying>([{ text: '{"n":null}' }, { text: '{"n":3}!' }, { calls: [["look", "a", {}]] }])(
    "fails with a second one: %j",
    async (second) => {
      const { outcome, end, world, checks } = await turn([{ text: "three" }, second]);
      expect(outcome).toMatchObject({ kind: "ended", state: "FAILED" });
      expect(end).toMatchObject({
        error: { code: 9, description: "answer: it does not fit the agent's schema, not even after the model was told what is wrong" },
      });
      expect((world.tools as TestTools).ran).toEqual([]);
      expect(checks).toEqual(["same"]);
    },
  );

  it("is refused with what is no schema", async () => {
    await expect(turn([], { answer: { schema: { type: "number of some kind" } } })).rejects.toThrow(
      "agents.counter.answer.schema: must be a JSON Schema of draft 07 or 2020-12",
    );
    await expect(turn([], { answer: {} as Required<AgentDefinition>["answer"] & object })).rejects.toThrow(
      "agents.counter.answer.schema: must be a JSON Schema",
    );
  });
});
