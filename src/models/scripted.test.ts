import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import { MessageSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { messageText, textMessage } from "../spi/index.ts";
import { toolMessage } from "../testing/model-history.ts";
import { VirtualClock } from "../testing/ports.ts";
import { neverAborted } from "../testing/provider-fixture.ts";
import { RecordingClock } from "../testing/recording-clock.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { parseScript } from "./script.ts";
import { createScriptedModel } from "./scripted.ts";

const SCRIPT = `
# A model that reads a file.
completions:
  - on: { turn: 1, step: 1 }
    reasoning: { text: A file is wanted., opaque: sealed }
    text: ["Let me ", "look."]
    delayMs: 50
    pieceDelayMs: 20
    calls:
      - { tool: read, args: { path: notes.txt } }
      - { tool: read, args: { path: more.txt }, id: mine }
    usage: { inputTokens: 12, outputTokens: 7, reasoningTokens: 3 }
  - on: { result: '"ok":true' }
    text: It is there.
    stopReason: end
  - on: { user: break }
    text: I was about to
    error: { code: unavailable }
  - on: { turn: 3 }
    text: The third turn.
`;
const [user, more, broken] = ["Read it.", "And now?", "Please break."].map((text) => textMessage("user", text)) as [
  Message,
  Message,
  Message,
];
const said = (text: string) => textMessage("assistant", text);

describe("a scripted model", () => {
  const clock = new RecordingClock();
  const model = createScriptedModel(SCRIPT, { clock });
  const complete = (...messages: readonly Message[]) =>
    collectCompletion(model.complete({ model: "script:x", messages }, { signal: neverAborted() }));

  it("says what the entry of its turn and step says: reasoning, text in pieces, calls, after the delays", async () => {
    const { response, deltas, facts } = await complete(textMessage("system", "s"), user);
    expect(clock.sleeps).toEqual([50, 20]);
    expect([deltas.get(0), deltas.get(1)]).toEqual([["A file is wanted."], ["Let me ", "look."]]);
    expect(response.message.parts.map(({ part }) => part)).toMatchObject([
      { case: "reasoning", value: { provider: "script", modelId: "script:x", opaque: { value: new TextEncoder().encode("sealed") } } },
      { case: "text", value: { text: "Let me look." } },
      { case: "toolCall", value: { id: "call_1_1_1", tool: "read", args: { path: "notes.txt" } } },
      { case: "toolCall", value: { id: "mine", tool: "read", args: { path: "more.txt" } } },
    ]);
    expect(response.usage).toMatchObject({ inputTokens: 12n, outputTokens: 7n, reasoningTokens: 3n });
    expect(facts).toEqual({ stopReason: "tool_calls", attempts: 1 });
  });

  it("says the same again: what it says is told by the request alone", async () => {
    const [first, again] = [await complete(user), await complete(user)];
    expect(again).toEqual(first);
    // A fork or another host has a model of its own.
    const other = createScriptedModel(parseScript(SCRIPT), { clock: new RecordingClock() });
    expect(await collectCompletion(other.complete({ model: "script:x", messages: [user] }, { signal: neverAborted() }))).toEqual(first);
  });

  it("goes on by the results of its calls", async () => {
    const { message } = (await complete(user)).response;
    const next = await complete(user, message, toolMessage("call_1_1_1", "mine"));
    expect(messageText(next.response.message)).toBe("It is there.");
    expect(next.facts.stopReason).toBe("end");
  });

  it("gives no call an id that the conversation has", async () => {
    const taken = create(MessageSchema, {
      role: "user",
      parts: [{ part: { case: "toolCall", value: { id: "mine", tool: "t" } } }, { part: { case: "text", value: { text: "go" } } }],
    });
    const ids = (await complete(taken)).response.message.parts.flatMap(({ part }) => (part.case === "toolCall" ? [part.value.id] : []));
    expect(ids).toEqual(["call_1_1_1", "mine_2"]);
  });

  it("counts a turn for each time that the user speaks after the assistant", async () => {
    const { response } = await complete(user, said("a"), more, more, said("b"), more);
    expect(messageText(response.message)).toBe("The third turn.");
  });

  it("fails as its script says, after what comes before it", async () => {
    const chunks: string[] = [];
    const call = (async () => {
      for await (const chunk of model.complete({ model: "m", messages: [user, said("a"), broken] }, { signal: neverAborted() }))
        chunks.push(chunk.kind);
    })();
    await expect(call).rejects.toMatchObject({ code: "unavailable", message: "model: the script fails here" });
    expect(chunks).toEqual(["text"]);
  });

  it("says which turn and step it has nothing for", async () => {
    await expect(complete(user, said("a"), more)).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("turn 2, step 1"),
    });
  });

  it("stops in a delay when it is called off", async () => {
    const controller = new AbortController();
    const waiting = createScriptedModel(SCRIPT, { clock: new VirtualClock() });
    const call = collectCompletion(waiting.complete({ model: "m", messages: [user] }, { signal: controller.signal }));
    controller.abort(new HoldfastError("deadline_exceeded", "late"));
    await expect(call).rejects.toMatchObject({ code: "deadline_exceeded" });
  });
});

describe("a script", () => {
  it("may be JSON", () => {
    expect(parseScript('{\n\t"completions": [{"text": "hi"}]\n}').completions).toMatchObject([
      { on: {}, text: ["hi"], calls: [], delayMs: 0 },
    ]);
  });

  it.each([
    ["", "script"],
    ["- a", "script"],
    ["completions: []", "script.completions"],
    ["completions: 5", "script.completions"],
    ["completion: []", "script.completion"],
    ["completions:\n  - {}", "script.completions[0]"],
    ["completions:\n  - text: hi\n  - txt: hi", "script.completions[1].txt"],
    ["completions:\n  - text: ''", "script.completions[0].text"],
    ["completions:\n  - text: [hi, 5]", "script.completions[0].text[1]"],
    ["completions:\n  - { text: hi, on: { turn: 0 } }", "script.completions[0].on.turn"],
    ["completions:\n  - { text: hi, on: { user: 5 } }", "script.completions[0].on.user"],
    ["completions:\n  - { text: hi, delayMs: soon }", "script.completions[0].delayMs"],
    ["completions:\n  - { text: hi, reasoning: { opaque: x } }", "script.completions[0].reasoning.text"],
    ["completions:\n  - calls: [{ args: {} }]", "script.completions[0].calls[0].tool"],
    ["completions:\n  - calls: [{ tool: t, args: { n: 12345678901234567890 } }]", "script.completions[0].calls[0].args"],
    ["completions:\n  - error: { code: broken }", "script.completions[0].error.code"],
    ["completions:\n  - { error: { code: internal }, calls: [{ tool: t }] }", "script.completions[0].error"],
    ["completions:\n  - { text: hi, usage: { tokens: 1 } }", "script.completions[0].usage.tokens"],
  ])("of %j is refused at %s", (text, field) => {
    expect(() => parseScript(text)).toThrow(expect.objectContaining({ code: "invalid_argument", field }));
  });

  it.each([
    ["completions:\n  - text: 'secret", 2],
    ["completions:\n  - text: a\n    text: secret", 3],
    ["{\n\n]secret", 3],
  ])("that is neither YAML nor JSON is refused with its line and nothing of its text", (text, line) => {
    expect(() => parseScript(text)).toThrow(`script: must be YAML or JSON; this is neither at line ${line}`);
  });
});
