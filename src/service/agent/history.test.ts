import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { DOOR_STORES, doorWorld, pureTool, scriptedModel } from "../../../e2e/support/door.ts";
import { sessionUidOf } from "../../base/index.ts";
import { ConversationMessageSchema } from "../../gen/roz/v1/agent_pb.ts";
import type { DoorClient } from "../../testing/door-client.ts";
import { historyMessages, turnsOf } from "./history.ts";
import { AGENT_LIMITS } from "./limits.ts";

type Said = MessageInitShape<typeof ConversationMessageSchema>;
type PartInit = NonNullable<Said["parts"]>[number];

const said = (role: string, ...parts: PartInit[]): Said => ({ role, parts });
const text = (words: string): PartInit => ({ part: { case: "text", value: { text: words } } });
const use = (id: string, name = "look"): PartInit => ({ part: { case: "toolUse", value: { id, name, input: { at: "door" } } } });
const outcome = (toolUseId: string, more = {}): PartInit => ({
  part: { case: "toolResult", value: { toolUseId, content: "open", ...more } },
});
const thinking = (signature: string): PartInit => ({ part: { case: "thinking", value: { thinking: "Hm.", signature } } });
const image = (mediaType = "image/png", data = new Uint8Array([1, 2])): PartInit => ({
  part: { case: "image", value: { mediaType, data } },
});

const CONVERSATION: Said[] = [
  said("system", text("Be brief.")),
  said("user", text("Is the door open?"), image()),
  said("assistant", thinking("sig=="), text("Let me look."), use("t1"), use("t2", "smell")),
  said("user", outcome("t2", { content: "", isError: true }), outcome("t1", { name: "look" }), text("And now?")),
  said("assistant", thinking(""), text("It is.")),
];

const parsed = (...messages: Said[]) =>
  historyMessages(
    messages.map((message) => create(ConversationMessageSchema, message)),
    AGENT_LIMITS,
  );

describe("a history", () => {
  it("becomes messages of the contract: thinking with its signature, images as files, results as those of their calls", () => {
    const [system, user, assistant, results, last] = parsed(...CONVERSATION);
    expect(system).toMatchObject({ role: "system", parts: [{ part: { value: { text: "Be brief." } } }] });
    expect(user?.parts[1]?.part).toMatchObject({ case: "file", value: { mime: "image/png", source: { value: new Uint8Array([1, 2]) } } });
    const [reasoning, , call] = assistant!.parts.map(({ part }) => part);
    expect(reasoning).toMatchObject({
      case: "reasoning",
      value: { provider: "anthropic", summary: [{ part: { value: { text: "Hm." } } }] },
    });
    const opaque = reasoning?.case === "reasoning" ? reasoning.value.opaque : undefined;
    expect(new TextDecoder().decode(opaque?.case === "opaqueBytes" ? opaque.value : undefined)).toBe(
      '{"type":"thinking","thinking":"Hm.","signature":"sig=="}',
    );
    expect(call).toMatchObject({ case: "toolCall", value: { id: "t1", tool: "look", args: { at: "door" } } });
    expect(results?.parts.map(({ part }) => part.value)).toMatchObject([
      { id: "t2", isError: true },
      { id: "t1", isError: false },
      { text: "And now?" },
    ]);
    expect(last?.parts[0]?.part).toMatchObject({ case: "reasoning", value: { provider: "", opaque: { case: undefined } } });
  });

  it.each<readonly [message: string, messages: Said[]]>([
    ["history[0].role: must be system, user, assistant or tool", [said("", text("x"))]],
    ["history[0].parts: must have at least one part", [said("user")]],
    ["history[0].parts[0]: must have one of text, tool_use, tool_result, thinking and image", [said("user", {})]],
    ["history[0].parts[0].tool_use: must be in a message of the assistant", [said("user", use("t"))]],
    ["history[0].parts[0].tool_use.id: must be set", [said("assistant", use(""))]],
    ["history[0].parts[0].tool_use.name: must be set", [said("assistant", use("t", ""))]],
    [
      "history[1].parts[0].tool_use.id: must be unique: another tool_use of the history has this id",
      [said("assistant", use("t")), said("assistant", use("t"))],
    ],
    ["history[0].parts[0].tool_result.tool_use_id: must be the id of a tool_use before it", [said("user", outcome("t"))]],
    [
      "history[1].parts[1].tool_result.tool_use_id: must be that of a tool_use without a result; this one has one already",
      [said("assistant", use("t")), said("tool", outcome("t"), outcome("t"))],
    ],
    [
      "history[1].parts[0].tool_result.name: must be that of its tool_use, or empty",
      [said("assistant", use("t")), said("user", outcome("t", { name: "x" }))],
    ],
    [
      "history[1].parts[0].tool_result: must be in a message of the user or of a tool",
      [said("assistant", use("t")), said("assistant", outcome("t"))],
    ],
    ["history[0].parts[0].thinking: must be in a message of the assistant", [said("user", thinking("s"))]],
    ["history[0].parts[0].image.media_type: must be an image type such as image/png", [said("user", image("text/html"))]],
    ["history[0].parts[0].image.data: must not be empty", [said("user", image("image/png", new Uint8Array()))]],
  ])("is refused: %s", (message, messages) => {
    expect(() => parsed(...messages)).toThrow(expect.objectContaining({ code: "invalid_argument", message }));
  });

  it("is cut into turns that keep a call and its results together", () => {
    const messages = parsed(said("user", text("a")), said("assistant", use("t")), said("tool", outcome("t")), said("assistant", text("b")));
    const sizes = (max: number) => [...turnsOf(messages, max)].map((turn) => turn.length);
    expect(sizes(9)).toEqual([4]);
    expect(sizes(2)).toEqual([1, 2, 1]);
    expect(sizes(3)).toEqual([3, 1]);
    expect(sizes(1)).toEqual([1, 1, 1, 1]);
  });
});

describe.each(DOOR_STORES)("a session with a history, over %s", (store) => {
  const begun = async (client: DoorClient, history: Said[]): Promise<void> => {
    client.say({ case: "start", value: { history, tools: [pureTool("look")] } });
    await client.next("sessionStarted");
  };

  it("goes on from it: the model is sent it before the first message, in a form that providers take", async () => {
    const model = scriptedModel();
    await using at = await doorWorld(store, { models: model });
    await using host = at.host();
    const client = host.client();
    await begun(client, CONVERSATION);
    expect(client.seq).toBe(7);
    expect(client.headers).toMatchObject({ "holdfast-seq": "7" });
    client.say({ case: "userMessage", value: { content: "Thanks.", messageId: "m1" } });
    await client.next("turnComplete");
    expect(client.story()).toEqual(["started", "text done", "complete m1 end_turn"]);
    const words = model.requests[0]!.messages.map(({ role, parts }) => [role, parts.map(({ part }) => part.case).join(" ")]);
    expect(words).toEqual([
      ["system", "text"],
      ["user", "text file"],
      ["assistant", "reasoning text toolCall toolCall"],
      ["tool", "toolResult toolResult"],
      ["user", "text"],
      ["assistant", "reasoning text"],
      ["user", "text"],
    ]);
    const results = model.requests[0]!.messages[3]!.parts.map(({ part }) => part.value);
    expect(results).toMatchObject([{ id: "t1" }, { id: "t2" }]);
    expect(await at.checks(client.session)).toEqual(["same", "same"]);
    expect((await host.host.story(sessionUidOf(client.session))).slice(0, 7)).toEqual([
      "EXECUTION_START",
      "INPUT Be brief.",
      "INPUT Is the door open?file",
      "INPUT reasoningLet me look.toolCalltoolCall",
      "INPUT toolResulttoolResultAnd now?",
      "INPUT reasoningIt is.",
      "END COMPLETED",
    ]);
  });

  it("tells the model of a call without a result that its outcome is unknown", async () => {
    const model = scriptedModel();
    await using at = await doorWorld(store, { models: model });
    await using host = at.host();
    const client = host.client();
    await begun(client, [said("user", text("go")), said("assistant", use("t1"))]);
    client.say({ case: "userMessage", value: { content: "Well?" } });
    await client.next("turnComplete");
    expect(model.requests[0]!.messages[2]).toMatchObject({
      role: "tool",
      parts: [{ part: { value: { id: "t1", isError: true, error: expect.stringMatching(/unknown/) } } }],
    });
  });

  it("may be longer than one turn has inputs; nobody is told of these turns", async () => {
    const model = scriptedModel();
    await using at = await doorWorld(store, { models: model });
    await using host = at.host();
    const client = host.client();
    await begun(
      client,
      Array.from({ length: 600 }, (_, index) => said(index % 2 === 0 ? "user" : "assistant", text(`word ${index}`))),
    );
    client.say({ case: "userMessage", value: { content: "Last." } });
    await client.next("turnComplete");
    expect(model.requests[0]!.messages).toHaveLength(601);
    const back = host.client({ session: client.session, fromSeq: 0 });
    await back.next("activityUpdate");
    expect(back.story()).toEqual(["started", "text done", expect.stringMatching(/^complete/)]);
    expect(await at.checks(client.session)).toEqual(["same", "same", "same", "same"]);
  });
});
