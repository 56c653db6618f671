/** What the Google provider does of its own; the rest is in `provider-answers.test.ts`. */

import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MessageSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { messageText, textMessage, type ModelRequest } from "../spi/index.ts";
import { throughJournal, toolMessage } from "../testing/model-history.ts";
import { startModelServer, type ModelServer, type StreamStep } from "../testing/model-server.ts";
import { googleChunk, googleEnd, googleText } from "../testing/model-streams-google.ts";
import { sse } from "../testing/model-streams.ts";
import { SeededRandom } from "../testing/ports.ts";
import { RecordingClock } from "../testing/recording-clock.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { NO_SIGNATURE } from "./google-request.ts";
import { createGoogleProvider } from "./google.ts";

const MODEL = "google/gemini-3-x";
const HELLO: ModelRequest = { model: MODEL, messages: [textMessage("system", "Be brief."), textMessage("user", "hello")] };
const SIGNATURE = "CiQB0e2Kb+/4A9==";

describe("the Google provider", () => {
  let server: ModelServer;
  const clock = new RecordingClock();
  beforeEach(async () => {
    server = await startModelServer();
    clock.sleeps.length = 0;
  });
  afterEach(() => server.close());

  const complete = (request = HELLO) =>
    collectCompletion(
      createGoogleProvider({ baseUrl: server.googleBaseUrl, apiKey: "k", clock, random: new SeededRandom(1) }).complete(request, {
        signal: new AbortController().signal,
      }),
    );
  const answerWith = (...steps: readonly StreamStep[]) => {
    server.script({
      kind: "stream",
      steps: [...steps, ...googleEnd({ inputTokens: 9, outputTokens: 5, cachedTokens: 4, reasoningTokens: 3 })],
    });
    return complete();
  };
  const lastBody = () => server.requests.at(-1)?.json as { contents: unknown[] };
  const contents = () => lastBody().contents;
  const continuing = (message: Message, more: readonly Message[] = [textMessage("user", "and?")], model = MODEL) =>
    complete({ model, messages: [...HELLO.messages, message, ...more] });

  it("sends the body that the request maps to, with the model in the path and the key in its header", async () => {
    await complete();
    expect(new TextDecoder().decode(server.requests[0]?.body)).toBe(
      '{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"hello"}]}]}',
    );
    expect(server.requests[0]?.path).toBe("/v1beta/models/gemini-3-x:streamGenerateContent?alt=sse");
  });

  it("has a system message of the middle of the conversation at its place", async () => {
    await continuing(textMessage("assistant", "Hello."), [textMessage("system", "Mind the cat."), textMessage("user", "and?")]);
    expect(lastBody()).toMatchObject({ systemInstruction: { parts: [{ text: "Be brief." }] } });
    expect(contents().at(-1)).toEqual({ role: "user", parts: [{ text: "[The system says:]\nMind the cat." }, { text: "and?" }] });
  });

  it("hands thought signatures back byte for byte on the parts that they came with, after a journey through the journal (I2)", async () => {
    const thought = { text: "Hm.", thought: true, thoughtSignature: "VGg=" };
    const { response, facts, deltas } = await answerWith(
      googleChunk([{ text: "I ", thought: true }]),
      googleChunk([{ text: "think.", thought: true }]),
      googleChunk([thought]),
      ...googleText("Let ", "me "),
      googleChunk([{ text: "look.", thoughtSignature: "VHg=" }]),
      googleChunk([
        { functionCall: { id: "c1", name: "read", args: { n: 1 } }, thoughtSignature: SIGNATURE },
        { functionCall: { name: "read", args: {} } },
      ]),
    );
    expect(deltas.get(0)?.join("")).toBe("I think.");
    expect(messageText(response.message)).toBe("Let me look.");
    expect(response.usage).toMatchObject({ inputTokens: 9n, outputTokens: 5n, reasoningTokens: 3n });
    expect(facts).toMatchObject({ stopReason: "STOP", cachedInputTokens: 4 });
    const second = response.message.parts.at(-1)?.part;
    const id = second?.case === "toolCall" ? second.value.id : "";
    expect(id).toMatch(/^call_[0-9a-f]{24}$/);
    await continuing(throughJournal(response.message), [toolMessage("c1", id)]);
    expect(contents().slice(1)).toEqual([
      {
        role: "model",
        parts: [
          thought,
          { text: "Let me " },
          { text: "look.", thoughtSignature: "VHg=" },
          { functionCall: { id: "c1", name: "read", args: { n: 1 } }, thoughtSignature: SIGNATURE },
          { functionCall: { id, name: "read", args: {} } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "c1", name: "read", response: { output: '{"ok":true}' } } },
          { functionResponse: { id, name: "read", response: { output: '{"ok":true}' } } },
        ],
      },
    ]);
  });

  it("keeps a signature that comes with an empty text at the end of a stream", async () => {
    const { response } = await answerWith(...googleText("Done."), googleChunk([{ text: "", thoughtSignature: SIGNATURE }]));
    await continuing(throughJournal(response.message));
    expect(contents()[1]).toEqual({ role: "model", parts: [{ text: "Done." }, { text: "", thoughtSignature: SIGNATURE }] });
  });

  it("leaves the signatures of another model out, and says so to a model that wants one", async () => {
    const { response } = await answerWith(
      googleChunk([{ functionCall: { id: "c1", name: "read", args: {} }, thoughtSignature: SIGNATURE }]),
    );
    await continuing(response.message, [toolMessage("c1")], "google/gemini-3-y");
    expect(contents()[1]).toMatchObject({ parts: [{ functionCall: { id: "c1" }, thoughtSignature: NO_SIGNATURE }] });
    const older = complete({ model: "google/gemini-2.5-pro", messages: [...HELLO.messages, response.message, toolMessage("c1")] });
    // The rules of the test server are Gemini 3's.
    await expect(older).rejects.toMatchObject({ code: "invalid_argument" });
    expect(JSON.stringify(contents()[1])).not.toContain("thoughtSignature");
  });

  it("sends files, tools and a tool choice as the API wants them", async () => {
    const bytes = new Uint8Array([1, 2, 3]);
    const files = create(MessageSchema, {
      role: "user",
      parts: [
        { part: { case: "file", value: { mime: "image/png", source: { case: "bytes", value: bytes } } } },
        { part: { case: "file", value: { mime: "application/zip", source: { case: "bytes", value: bytes } } } },
        { part: { case: "file", value: { mime: "application/pdf", source: { case: "uri", value: "https://host/a.pdf" } } } },
      ],
    });
    const tools = [
      { $typeName: "agentsessions.v1.ToolDefinition" as const, name: "read", description: "", inputSchema: { type: "object" } },
    ];
    await complete({
      model: MODEL,
      messages: [files],
      tools,
      toolChoice: { $typeName: "agentsessions.v1.ToolChoice", mode: 3, name: "read" },
    });
    expect(server.requests.at(-1)?.json).toMatchObject({
      contents: [
        {
          parts: [
            { inlineData: { mimeType: "image/png", data: "AQID" } },
            { text: "[file application/zip; its content is not part of this request]" },
            { fileData: { mimeType: "application/pdf", fileUri: "https://host/a.pdf" } },
          ],
        },
      ],
      tools: [{ functionDeclarations: [{ name: "read", parametersJsonSchema: { type: "object" } }] }],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["read"] } },
    });
  });

  it("reads events with any end of line, in any pieces", async () => {
    const event = JSON.stringify({ candidates: [{ content: { parts: [{ text: "é😀" }] }, finishReason: "STOP" }] });
    const text = `: hello\r\ndata: {\r\ndata: ${event.slice(1)}\r\n\r\n`;
    server.script({ kind: "stream", steps: text.split(/(?:)/u).map((char) => ({ kind: "send", text: char })) });
    expect(messageText((await complete()).response.message)).toBe("é😀");
  });

  it("waits as long as the provider asks in an error's details", async () => {
    const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "7s" }];
    const busy = { kind: "status" as const, status: 429, body: JSON.stringify({ error: { status: "RESOURCE_EXHAUSTED", details } }) };
    server.script(busy);
    expect((await complete()).facts.attempts).toBe(2);
    expect(clock.sleeps).toEqual([7_000]);
  });

  it("knows a wrong key by its reason, since its status is 400", async () => {
    const details = [{ reason: "API_KEY_INVALID" }];
    server.script({ kind: "status", status: 400, body: JSON.stringify({ error: { status: "INVALID_ARGUMENT", details } }) });
    await expect(complete()).rejects.toMatchObject({ code: "failed_precondition", details: { reason: "api_key_invalid" } });
  });

  it("does not try again what the provider's safety rules refuse", async () => {
    server.script({ kind: "stream", steps: [sse({ promptFeedback: { blockReason: "SAFETY" } })] });
    await expect(complete()).rejects.toMatchObject({ code: "invalid_argument", details: { reason: "prompt_blocked", attempts: 1 } });
  });
});
