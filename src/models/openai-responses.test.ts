/** What the Responses API has of its own; the rest is in `provider-answers.test.ts`. */

import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MessageSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { textMessage, type ModelRequest } from "../spi/index.ts";
import { startModelServer, type ModelServer, type StreamStep } from "../testing/model-server.ts";
import {
  responsesCall,
  responsesEnd,
  responsesEvent,
  responsesReasoning,
  responsesStart,
  responsesText,
} from "../testing/model-streams-responses.ts";
import { SeededRandom } from "../testing/ports.ts";
import { RecordingClock } from "../testing/recording-clock.ts";
import { throughJournal, toolMessage } from "../testing/model-history.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { createOpenAiProvider } from "./openai.ts";

const MODEL = "openai/gpt-x";
const HELLO: ModelRequest = { model: MODEL, messages: [textMessage("user", "hello")] };
const ENCRYPTED = 'gAAAAABo+/==\u2028<&>"\\';
const REASONING = {
  id: "rs_1",
  type: "reasoning",
  summary: [{ type: "summary_text", text: "First.\n\nThen." }],
  encrypted_content: ENCRYPTED,
  x: [1],
};

describe("the Responses API", () => {
  let server: ModelServer;
  beforeEach(async () => {
    server = await startModelServer();
  });
  afterEach(() => server.close());

  const complete = (request = HELLO) =>
    collectCompletion(
      createOpenAiProvider({
        baseUrl: server.openAiBaseUrl,
        apiKey: "k",
        api: "responses",
        clock: new RecordingClock(),
        random: new SeededRandom(1),
      }).complete(request, { signal: new AbortController().signal }),
    );
  const answerWith = (...steps: readonly StreamStep[]) => {
    server.script({
      kind: "stream",
      steps: [...responsesStart(), ...steps, ...responsesEnd({ inputTokens: 9, outputTokens: 5, cachedTokens: 4, reasoningTokens: 3 })],
    });
    return complete();
  };
  const lastBody = () => server.requests.at(-1)?.json as { input: Record<string, unknown>[] };
  const continuing = (message: Message, more: readonly Message[] = [textMessage("user", "and?")], model = MODEL) =>
    complete({ model, messages: [...HELLO.messages, message, ...more] });

  it("is asked with the body that the request maps to, and keeps nothing", async () => {
    await complete();
    expect(new TextDecoder().decode(server.requests[0]?.body)).toBe(
      '{"model":"gpt-x","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}],' +
        '"store":false,"include":["reasoning.encrypted_content"],"stream":true}',
    );
    expect(server.requests[0]?.path).toBe("/v1/responses");
  });

  it("does not ask a model for reasoning that has none", async () => {
    await complete({ ...HELLO, model: "gpt-4o" });
    expect(lastBody()).not.toHaveProperty("include");
  });

  it("hands reasoning, phases and calls back byte for byte, in their place, after a journey through the journal (I2)", async () => {
    const { response, deltas, facts } = await answerWith(
      ...responsesReasoning(0, { ...REASONING, status: "completed" } as { id: string }, ["First.", "Then."]),
      ...responsesText(1, ["I l", "ook."], { id: "msg_7", phase: "commentary" }),
      ...responsesCall(2, "call_1", "read", ['{"n":', "1}"]),
      ...responsesCall(3, "call_2", "read", [""]),
    );
    expect(deltas.get(0)?.join("")).toBe("First.\n\nThen.");
    expect(response.usage).toMatchObject({ inputTokens: 9n, outputTokens: 5n, reasoningTokens: 3n });
    expect(facts).toMatchObject({ stopReason: "completed", cachedInputTokens: 4, cacheWriteTokens: 0 });
    expect(response.message.parts[0]?.part.value).toMatchObject({ provider: "openai", modelId: MODEL, itemId: "rs_1" });
    await continuing(throughJournal(response.message), [toolMessage("call_1", "call_2")]);
    expect(lastBody().input.slice(1)).toEqual([
      REASONING,
      {
        type: "message",
        id: "msg_7",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "I look.", annotations: [] }],
        phase: "commentary",
      },
      { type: "function_call", call_id: "call_1", name: "read", arguments: '{"n":1}' },
      { type: "function_call", call_id: "call_2", name: "read", arguments: "{}" },
      { type: "function_call_output", call_id: "call_1", output: '{"ok":true}' },
      { type: "function_call_output", call_id: "call_2", output: '{"ok":true}' },
    ]);
    expect(new TextDecoder().decode(server.requests.at(-1)?.body)).toContain(JSON.stringify(REASONING));
  });

  it("leaves reasoning out that nothing followed, as in an answer that was cut short", async () => {
    server.script({
      kind: "stream",
      steps: [...responsesStart(), ...responsesReasoning(0, REASONING), ...responsesEnd(undefined, "max_output_tokens")],
    });
    const { response, facts } = await complete();
    expect(facts.stopReason).toBe("max_output_tokens");
    await continuing(response.message);
    expect(lastBody().input.map((item) => item["role"])).toEqual(["user", "user"]);
  });

  it("leaves reasoning out with half of a surrogate pair in it, which would have every later request refused", async () => {
    for (const field of ["encrypted_content", "x"]) {
      const { response } = await answerWith(
        ...responsesReasoning(0, { ...REASONING, [field]: "half: \ud83d" }),
        ...responsesText(1, ["So."], { id: "msg_1" }),
      );
      await continuing(throughJournal(response.message));
      expect(server.requests.at(-1)?.refusal).toBeUndefined();
      expect(lastBody().input.map((item) => item["type"])).toEqual(["message", "message", "message"]);
    }
  });

  it("leaves another provider's reasoning out, and what goes with it stays", async () => {
    const theirs = create(MessageSchema, {
      role: "assistant",
      parts: [
        {
          part: {
            case: "reasoning",
            value: { provider: "anthropic", opaque: { case: "opaqueBytes", value: new TextEncoder().encode("{}") } },
          },
        },
        { part: { case: "text", value: { text: "hi" } } },
      ],
    });
    await continuing(theirs);
    expect(lastBody().input[1]).toEqual({ type: "message", role: "assistant", content: "hi" });
  });

  it("sends files, tools and a tool choice as the API wants them", async () => {
    const png = new Uint8Array([1, 2, 3]);
    const files = create(MessageSchema, {
      role: "user",
      parts: [
        { part: { case: "file", value: { mime: "image/png", source: { case: "bytes", value: png } } } },
        { part: { case: "file", value: { mime: "application/pdf", name: "a.pdf", source: { case: "bytes", value: png } } } },
        { part: { case: "file", value: { mime: "audio/wav", source: { case: "bytes", value: png } } } },
        { part: { case: "file", value: { mime: "image/png", source: { case: "uri", value: "https://host/a.png" } } } },
      ],
    });
    const tools = [
      { $typeName: "agentsessions.v1.ToolDefinition" as const, name: "read", description: "Reads.", inputSchema: { type: "object" } },
    ];
    await complete({
      model: MODEL,
      messages: [files],
      tools,
      toolChoice: { $typeName: "agentsessions.v1.ToolChoice", mode: 3, name: "read" },
    });
    expect(lastBody()).toMatchObject({
      input: [
        {
          content: [
            { type: "input_image", image_url: "data:image/png;base64,AQID" },
            { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AQID" },
            { type: "input_text" },
            { type: "input_image", image_url: "https://host/a.png" },
          ],
        },
      ],
      tools: [{ type: "function", name: "read", description: "Reads.", parameters: { type: "object" }, strict: false }],
      tool_choice: { type: "function", name: "read" },
    });
  });

  it("takes a server that sends whole items and no deltas", async () => {
    const item = { id: "msg_0", type: "message", role: "assistant", content: [{ type: "output_text", text: "whole" }] };
    const { response } = await answerWith(responsesEvent("response.output_item.done", { output_index: 0, item }));
    expect(response.message.parts).toMatchObject([{ part: { case: "text", value: { text: "whole" } } }]);
  });

  it.each([
    ["invalid_prompt", "invalid_argument"],
    ["rate_limit_exceeded", "resource_exhausted"],
    ["server_error", "unavailable"],
  ])("says what kind of failure %s is", async (code, expected) => {
    const failed = { kind: "stream" as const, steps: [responsesEvent("error", { code, message: "secret", sequence_number: 1 })] };
    server.script(failed, failed, failed, failed);
    await expect(complete()).rejects.toMatchObject({ code: expected });
  });
});
