import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { doorWorld, environmentWith, physicalTool, pureTool, scriptedModel } from "../../../e2e/support/door.ts";
import { sessionUidOf } from "../../base/index.ts";
import { ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { ToolResult } from "../../spi/index.ts";
import type { DoorClient, Saying } from "../../testing/door-client.ts";
import type { DoorHost } from "../../testing/door-world.ts";
import type { TestModel } from "../../testing/host.ts";
import { TestTools } from "../../testing/tools.ts";

const result = (toolCallId: string, text = "done"): Saying => ({ case: "toolResult", value: { toolCallId, success: true, result: text } });

/** A turn that has just asked its client for a tool. */
async function asked(host: DoorHost, tools: readonly ReturnType<typeof pureTool>[]): Promise<DoorClient> {
  const client = host.client();
  client.say({ case: "start", value: { tools: [...tools] } });
  client.say({ case: "userMessage", value: { content: "go", messageId: "m1" } });
  await client.next("toolRequest");
  return client;
}

/** The results on record, by the ids of their calls. */
async function results(host: DoorHost, client: DoorClient): Promise<Map<string, ToolResult>> {
  const records = await host.host.records(sessionUidOf(client.session));
  return new Map(records.flatMap(({ event }) => (event?.body.case === "result" ? [[event.body.value.id, event.body.value]] : [])));
}

const LOOK = { calls: [["look", "c1", {}]] } as const;

describe("a tool of the client's", () => {
  it("that does not answer in its time is an error result to the model, and the turn goes on", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel(LOOK) });
    await using host = at.host();
    const client = await asked(host, [pureTool("look", { timeoutMs: 5_000 })]);
    expect(client.all("toolRequest")[0]).toMatchObject({ timeoutMs: 5_000 });
    at.ports.clock.advance(4_999);
    expect(client.all("turnComplete")).toEqual([]);
    at.ports.clock.advance(1);
    await client.next("turnComplete");
    expect((await results(host, client)).get("c1")).toMatchObject({
      isError: true,
      output: { timed_out: true },
      error: expect.stringMatching(/5000 ms/),
    });
    client.say(result("c1", "late"));
    expect(await client.next("error")).toMatchObject({ code: "no_active_turn" });
  });

  it("has the server's time where it names none, and the longest there is where it names more", async () => {
    for (const [timeoutMs, expected] of [
      [0, 120_000],
      [4_000_000_000, 3_600_000],
    ] as const) {
      await using at = await doorWorld("memory", { models: scriptedModel(LOOK) });
      await using host = at.host();
      const client = await asked(host, [pureTool("look", { timeoutMs })]);
      expect(client.all("toolRequest")).toMatchObject([{ timeoutMs: expected }]);
    }
  });

  it("that answers too late is told unknown_tool_call while its turn still runs", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel(LOOK, { calls: [["look", "c2", {}]] }) });
    await using host = at.host();
    const client = await asked(host, [pureTool("look", { timeoutMs: 1_000 })]);
    at.ports.clock.advance(1_000);
    await client.next("toolRequest", ({ toolCallId }) => toolCallId === "c2");
    client.say(result("c1", "late"));
    expect(await client.next("error")).toMatchObject({ code: "unknown_tool_call" });
    client.say(result("c2"));
    await client.next("turnComplete");
  });

  it("that answers twice is heard once, quietly", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel(LOOK, { calls: [["look", "c2", {}]] }) });
    await using host = at.host();
    const client = await asked(host, [pureTool("look")]);
    client.say(result("c1", "first"));
    client.say(result("c1", "second"));
    await client.next("toolRequest");
    client.say(result("c1", "third"));
    client.say(result("c2"));
    await client.next("turnComplete");
    expect(client.all("error")).toEqual([]);
    expect((await results(host, client)).get("c1")).toMatchObject({ content: [{ part: { value: { text: "first" } } }] });
  });

  it("that fails says so to the model, with its exit code", async () => {
    const model = scriptedModel(LOOK);
    await using at = await doorWorld("memory", { models: model });
    await using host = at.host();
    const client = await asked(host, [pureTool("look")]);
    client.say({ case: "toolResult", value: { toolCallId: "c1", success: false, result: "no such door", exitCode: 2 } });
    await client.next("turnComplete");
    expect(model.requests[1]!.messages.at(-1)!.parts[0]!.part.value).toMatchObject({
      isError: true,
      error: "the tool failed with exit code 2",
      output: { exit_code: 2, truncated: false },
      content: [{ part: { value: { text: "no such door" } } }],
    });
  });

  it("gets arguments that fit its schema only; the model is told what is wrong with others", async () => {
    const schema = { type: "object", properties: { at: { type: "string" } }, required: ["at"] };
    const model = scriptedModel({ calls: [["look", "c1", {}]] }, { calls: [["look", "c2", { at: "door" }]] });
    await using at = await doorWorld("memory", { models: model });
    await using host = at.host();
    const client = await asked(host, [pureTool("look", { parametersSchema: schema })]);
    expect(client.all("toolRequest")).toMatchObject([{ toolCallId: "c2", parameters: { at: "door" } }]);
    client.say(result("c2"));
    await client.next("turnComplete");
    expect((await results(host, client)).get("c1")).toMatchObject({
      isError: true,
      error: expect.stringMatching(/must have required property 'at'/),
    });
  });

  it("may give more than is recorded: it is cut, and says so", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel(LOOK), limits: { resultBytesMax: 10 } });
    await using host = at.host();
    const client = await asked(host, [pureTool("look")]);
    client.say(result("c1", "größere Töne"));
    await client.next("turnComplete");
    expect((await results(host, client)).get("c1")).toMatchObject({
      output: { truncated: true },
      content: [{ part: { value: { text: "größere " } } }],
    });
  });

  it("runs beside others of the same message where all only read", async () => {
    const both = {
      calls: [
        ["look", "c1", {}],
        ["smell", "c2", {}],
      ],
    } as const;
    await using at = await doorWorld("memory", { models: scriptedModel(both) });
    await using host = at.host();
    const client = await asked(host, [pureTool("look"), pureTool("smell")]);
    await client.next("toolRequest");
    client.say(result("c2"));
    client.say(result("c1"));
    await client.next("turnComplete");
    expect((await host.host.story(sessionUidOf(client.session))).filter((word) => word.startsWith("TOOL"))).toEqual([
      "TOOL_CALL c1",
      "TOOL_CALL c2",
      "TOOL_RESULT c2",
      "TOOL_RESULT c1",
    ]);
  });

  it("goes before one of the host's that has its name", async () => {
    const tools = new TestTools({ look: async () => ({ output: { host: true } }) });
    await using at = await doorWorld("memory", {
      models: scriptedModel(LOOK),
      tools,
      environments: [environmentWith({ tools: { pure: ["look"], physical: [] } })],
    });
    await using host = at.host();
    const client = await asked(host, [pureTool("look")]);
    client.say(result("c1"));
    await client.next("turnComplete");
    expect(tools.ran).toEqual([]);
  });
});

describe("the tools of a session", () => {
  /** The tools that the model is offered for a message. */
  const offered = async (model: TestModel, client: DoorClient, more = {}): Promise<readonly string[]> => {
    client.say({ case: "userMessage", value: { content: "what now?", ...more } });
    await client.next("turnComplete");
    return (model.requests.at(-1)?.tools ?? []).map(({ name }) => name);
  };

  it("are added and removed by their source, and a message may bring all of its own", async () => {
    const model = scriptedModel();
    await using at = await doorWorld("memory", { models: model });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [pureTool("look"), pureTool("sim__old")] } });
    expect(await offered(model, client)).toEqual(["look", "sim__old"]);
    client.say({ case: "registerTools", value: { source: "sim", tools: [pureTool("sim__step"), pureTool("sim__stop")] } });
    expect(await offered(model, client)).toEqual(["look", "sim__step", "sim__stop"]);
    expect(await offered(model, client, { tools: [pureTool("only")] })).toEqual(["only"]);
    client.say({ case: "registerTools", value: { tools: [pureTool("look", { description: "better" }), pureTool("more")] } });
    expect(await offered(model, client)).toEqual(["sim__step", "sim__stop", "look", "more"]);
    client.say({ case: "registerTools", value: { source: "sim", tools: [] } });
    expect(await offered(model, client)).toEqual(["look", "more"]);
  });

  it("are there again after a restart, and a system context that came with them is used by the next turn alone", async () => {
    const model = scriptedModel();
    await using at = await doorWorld("sqlite", { models: model });
    const first = at.host();
    const client = first.client();
    client.say({ case: "start", value: {} });
    client.say({ case: "registerTools", value: { source: "sim", tools: [pureTool("sim__step")], systemContext: "Step slowly." } });
    client.say({ case: "ping", value: {} });
    await client.next("pong");
    await first[Symbol.asyncDispose]();
    await using second = at.host();
    const back = second.client({ session: client.session });
    await back.next("activityUpdate");
    expect(await offered(model, back)).toEqual(["sim__step"]);
    expect(await offered(model, back)).toEqual(["sim__step"]);
    const systems = model.requests.map(({ messages }) => messages.filter(({ role }) => role === "system").length);
    const inputs = (await second.host.story(sessionUidOf(client.session))).filter((word) => word.startsWith("INPUT"));
    expect(inputs).toEqual(["INPUT Step slowly.", "INPUT what now?", "INPUT what now?"]);
    expect(systems).toEqual([1, 1]);
  });

  it("keep a system context for a message that brings none: that of the message goes before it", async () => {
    const model = scriptedModel();
    await using at = await doorWorld("memory", { models: model });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say({ case: "registerTools", value: { systemContext: "From the tools." } });
    await offered(model, client, { systemContext: "From the message." });
    await offered(model, client);
    const inputs = (await host.host.story(sessionUidOf(client.session))).filter((word) => word.startsWith("INPUT"));
    expect(inputs).toEqual(["INPUT From the message.", "INPUT what now?", "INPUT what now?"]);
  });
});

describe("physical tools in ooda_re_act", () => {
  const observing = (maxAgeMs: number) =>
    environmentWith({ observation: { tool: "see", maxAgeMs }, permissions: [{ tool: "*", policy: "allow" }] });
  const tools = [pureTool("see"), physicalTool("move"), physicalTool("grip")];
  const move = { calls: [["move", "a1", {}]] } as const;

  async function ooda(host: DoorHost): Promise<DoorClient> {
    const client = host.client();
    client.say({ case: "start", value: { tools } });
    client.say({ case: "userMessage", value: { content: "go", messageId: "m1", aiMode: "ooda_re_act" } });
    return client;
  }

  /** Answers the next observation. */
  async function observe(client: DoorClient): Promise<void> {
    const { toolCallId } = await client.next("toolRequest", ({ toolName }) => toolName === "see");
    client.say(result(toolCallId, "all is well"));
  }

  it("are asked of the client on a fresh observation", async () => {
    await using at = await doorWorld("memory", { models: scriptedModel(move), environments: [observing(1_000)] });
    await using host = at.host();
    const client = await ooda(host);
    await observe(client);
    expect(await client.next("toolRequest")).toMatchObject({ toolName: "move", toolCallId: "a1" });
    await client.next("presenceHint", ({ level }) => level === "full");
    client.say(result("a1"));
    await observe(client);
    expect(await client.next("turnComplete")).toMatchObject({ stopReason: "end_turn" });
    expect(await at.checks(client.session)).toEqual(["same"]);
  });

  it("are refused on a stale one, and not asked of the client", async () => {
    let stall = true;
    const model = scriptedModel(move, { text: "I stop." });
    const slow = Object.assign(Object.create(model), {
      providerOf: () => ({
        name: "slow",
        complete: (request: never, options: never) => {
          if (stall) at.ports.clock.advance(1_001);
          stall = false;
          return model.complete(request, options);
        },
      }),
    });
    await using at = await doorWorld("memory", { models: slow, environments: [observing(1_000)] });
    await using host = at.host();
    const client = await ooda(host);
    await observe(client);
    await observe(client);
    await client.next("turnComplete");
    expect(client.all("toolRequest").map(({ toolName }) => toolName)).toEqual(["see", "see"]);
    expect((await results(host, client)).get("a1")).toMatchObject({ isError: true, output: { stale_observation: true } });
  });

  it("are refused after a restart until the agent has looked again", async () => {
    await using at = await doorWorld("sqlite", { models: scriptedModel(move), environments: [observing(60_000)] });
    const first = at.host();
    const client = await ooda(first);
    await observe(client);
    await client.next("toolRequest", ({ toolName }) => toolName === "move");
    await first[Symbol.asyncDispose]();
    await using second = at.host();
    const back = second.client({ session: client.session, fromSeq: client.seq });
    await observe(back);
    await back.next("turnComplete");
    expect(back.all("toolRequest").map(({ toolName }) => toolName)).toEqual(["see"]);
    expect((await results(second, back)).get("a1")).toMatchObject({ isError: true, output: { stale_observation: true } });
  });

  it("that wait for a person run on an observation that is still fresh, in the process that saw it", async () => {
    const asks = { ...observing(60_000), permissions: [{ tool: "move", policy: "require_confirmation" } as const] };
    await using at = await doorWorld("memory", { models: scriptedModel(move), environments: [asks] });
    await using host = at.host();
    const client = await ooda(host);
    await observe(client);
    await client.next("activityUpdate", ({ state }) => state === "waiting_approval");
    client.say({ case: "permissionDecision", value: { toolCallId: "a1", approved: true } });
    expect(await client.next("toolRequest")).toMatchObject({ toolName: "move" });
    client.say(result("a1"));
    await observe(client);
    await client.next("turnComplete");
  });

  it("of the host are held to the same", async () => {
    const hostTools = new TestTools({
      move: async () => create(ToolResultSchema, { output: { moved: true } }),
      see: async () => ({ output: { clear: true } }),
    });
    const environments = [{ ...observing(1_000), tools: { pure: ["see"], physical: ["move"] } }];
    await using at = await doorWorld("memory", { models: scriptedModel(move, { text: "ok" }), tools: hostTools, environments });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say({ case: "userMessage", value: { content: "go", aiMode: "ooda_re_act" } });
    await client.next("turnComplete");
    expect(hostTools.ran.filter((id) => id === "a1")).toEqual(["a1"]);
    expect((await results(host, client)).get("a1")).toMatchObject({ isError: false, output: { moved: true } });
  });
});
