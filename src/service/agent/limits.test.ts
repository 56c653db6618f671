import { describe, expect, it } from "vitest";
import { doorWorld, pureTool, scriptedModel } from "../../../e2e/support/door.ts";
import type { DoorClient, Saying } from "../../testing/door-client.ts";
import { AGENT_LIMITS, type AgentLimits } from "./limits.ts";

const said = (content: string, more = {}): Saying => ({ case: "userMessage", value: { content, ...more } });
const start = (value: Extract<Saying, { case: "start" }>["value"]): Saying => ({ case: "start", value });
const words = (bytes: number): string => "x".repeat(bytes);
const schema = (bytes: number) => ({ title: words(bytes - '{"title":""}'.length) });
const history = (messages: number) =>
  Array.from({ length: messages }, () => ({ role: "user", parts: [{ part: { case: "text" as const, value: { text: "x" } } }] }));

/** A limit as it is set for the test, what keeps to it, and what is one over it. */
interface Edge {
  readonly limit: keyof AgentLimits;
  readonly set: number;
  readonly field: string;
  readonly request: (size: number) => Saying;
}

const EDGES: readonly Edge[] = [
  {
    limit: "toolsMax",
    set: 3,
    field: "tools",
    request: (size) => said("x", { tools: Array.from({ length: size }, (_, index) => pureTool(`t${index}`)) }),
  },
  {
    limit: "schemaBytesMax",
    set: 100,
    field: "tools[0].parameters_schema",
    request: (size) => said("x", { tools: [{ name: "a", parametersSchema: schema(size) }] }),
  },
  {
    limit: "toolsBytesMax",
    set: 100,
    field: "tools",
    request: (size) => said("x", { tools: [{ name: "a", description: words(size - 1) }] }),
  },
  {
    limit: "descriptionCharsMax",
    set: 50,
    field: "tools[0].description",
    request: (size) => said("x", { tools: [{ name: "a", description: words(size) }] }),
  },
  {
    limit: "messageBytesMax",
    set: 100,
    field: "content",
    request: (size) => said(words(size - 10), { context: [{ block: { case: "text", value: words(10) } }] }),
  },
  {
    limit: "contextBlocksMax",
    set: 2,
    field: "context",
    request: (size) => said("x", { context: Array.from({ length: size }, () => ({ block: { case: "text", value: "x" } })) }),
  },
  { limit: "systemContextBytesMax", set: 20, field: "system_context", request: (size) => said("x", { systemContext: words(size) }) },
  { limit: "idCharsMax", set: 20, field: "message_id", request: (size) => said("x", { messageId: words(size) }) },
];

async function started(client: DoorClient): Promise<void> {
  client.say(start({}));
  await client.next("sessionStarted");
}

describe("a limit of the interactive door", () => {
  it.each(EDGES)(
    "$limit is kept at its edge, and one more is invalid_argument that names $field",
    async ({ limit, set, field, request }) => {
      await using at = await doorWorld("memory", { models: scriptedModel(), limits: { [limit]: set } });
      await using host = at.host();
      const client = host.client();
      await started(client);
      client.say(request(set));
      await client.next("turnComplete");
      client.say(request(set + 1));
      const { code, message } = await client.next("error");
      expect({ code, message }).toEqual({
        code: "invalid_argument",
        message: expect.stringMatching(new RegExp(`^${field.replace(/[[\]]/g, "\\$&")}: `)),
      });
      expect(message).toContain(String(set));
      client.say(request(set));
      await client.next("turnComplete");
    },
  );

  it.each([
    { limit: "historyMessagesMax", set: 3, field: "history", value: (size: number) => ({ history: history(size) }) },
    {
      limit: "projectContextBytesMax",
      set: 30,
      field: "project_context",
      value: (size: number) => ({ projectContext: [words(10), words(size - 10)] }),
    },
    {
      limit: "contextBlocksMax",
      set: 2,
      field: "project_context",
      value: (size: number) => ({ projectContext: Array.from({ length: size }, () => "x") }),
    },
    {
      limit: "toolsMax",
      set: 2,
      field: "tools",
      value: (size: number) => ({ tools: Array.from({ length: size }, (_, index) => ({ name: `t${index}` })) }),
    },
    {
      limit: "idCharsMax",
      set: 7,
      field: "environment_id",
      value: (size: number) => ({ environmentId: size === 7 ? "default" : words(size) }),
    },
  ] as const)("$limit holds for StartSession as well", async ({ limit, set, field, value }) => {
    await using at = await doorWorld("memory", { limits: { [limit]: set } });
    await using host = at.host();
    const fits = host.client();
    fits.say(start(value(set)));
    await fits.next("sessionStarted");
    const over = host.client();
    over.say(start(value(set + 1)));
    await over.ended();
    expect(over.all("error")).toMatchObject([{ code: "invalid_argument", message: expect.stringMatching(`^${field}: `) }]);
  });

  it("of tools holds for all that are registered together", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel(), limits: { toolsMax: 3 } });
    await using host = at.host();
    const client = host.client();
    await started(client);
    const register = (source: string, count: number): Saying => ({
      case: "registerTools",
      value: { source, tools: Array.from({ length: count }, (_, index) => pureTool(`${source}__${index}`)) },
    });
    client.say(register("a", 2));
    client.say(register("b", 2));
    expect(await client.next("error")).toMatchObject({ code: "invalid_argument", message: "tools: has 4 tools; at most 3 are allowed" });
    client.say(register("a", 3));
    client.say({ case: "ping", value: {} });
    await client.next("pong");
    expect(client.all("error")).toHaveLength(1);
  });

  it("of feedback holds for a session", async () => {
    await using at = await doorWorld("memory", { limits: { feedbackMax: 2 } });
    await using host = at.host();
    const client = host.client();
    await started(client);
    for (let count = 0; count < 3; count++) client.say({ case: "feedback", value: { messageId: "m1", rating: "up" } });
    expect(await client.next("error")).toMatchObject({
      code: "invalid_argument",
      message: expect.stringMatching(/^feedback: the session has 2 entries/),
    });
  });

  it("of a turn's config is found at StartSession, before anything is written", async () => {
    await using at = await doorWorld("memory", { limits: { projectContextBytesMax: 1_000_000 } });
    await using host = at.host();
    const client = host.client();
    client.say(start({ projectContext: ['"'.repeat(130_000)] }));
    await client.ended();
    expect(client.all("error")).toMatchObject([
      { code: "invalid_argument", message: expect.stringMatching(/^project_context: takes too much/) },
    ]);
    expect((await at.journal.list({ limit: 10 })).rows).toEqual([]);
  });

  it("is as docs/limits.md has it", () => {
    expect(AGENT_LIMITS).toMatchObject({
      toolsMax: 256,
      schemaBytesMax: 65_536,
      toolsBytesMax: 262_144,
      messageBytesMax: 3_145_728,
      historyMessagesMax: 4_096,
    });
  });
});
