/** What the OpenAI-compatible provider does of its own; the rest is in `provider-answers.test.ts`. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { textMessage, type ModelRequest } from "../spi/index.ts";
import { startModelServer, type ModelServer } from "../testing/model-server.ts";
import { openAiChunk, openAiEnd, openAiText, sse } from "../testing/model-streams.ts";
import { RecordingClock } from "../testing/recording-clock.ts";
import { SeededRandom } from "../testing/ports.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { createOpenAiProvider, type OpenAiProviderOptions } from "./openai.ts";

const HELLO: ModelRequest = { model: "openai/gpt-x", messages: [textMessage("user", "hello")], params: { max_tokens: "9" } };

describe("the OpenAI-compatible provider", () => {
  let server: ModelServer;
  beforeEach(async () => {
    server = await startModelServer();
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await server.close();
  });

  const complete = (options: Partial<OpenAiProviderOptions> = {}, request = HELLO) =>
    collectCompletion(
      createOpenAiProvider({
        baseUrl: server.openAiBaseUrl,
        clock: new RecordingClock(),
        random: new SeededRandom(1),
        ...options,
      }).complete(request, { signal: new AbortController().signal }),
    );

  it("sends the body that the request maps to, and nothing of its own", async () => {
    await complete({ apiKey: "k" });
    expect(new TextDecoder().decode(server.requests[0]?.body)).toBe(
      '{"model":"gpt-x","messages":[{"role":"user","content":"hello"}],"max_tokens":9,"stream":true,"stream_options":{"include_usage":true}}',
    );
    expect(server.requests[0]?.path).toBe("/v1/chat/completions");
  });

  it("sends no authorization without a key, as for a server on the same machine", async () => {
    await complete();
    expect(server.requests[0]?.headers).not.toHaveProperty("authorization");
  });

  it("reads neither address nor key nor account from the environment", async () => {
    for (const name of ["OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"]) {
      vi.stubEnv(name, name === "OPENAI_BASE_URL" ? "http://127.0.0.1:1/v1" : "from-environment");
    }
    await complete();
    await complete({ apiKey: "k", organization: "org", project: "prj" });
    expect(JSON.stringify(server.requests[0]?.headers)).not.toContain("from-environment");
    expect(server.requests[1]?.headers).toMatchObject({ authorization: "Bearer k", "openai-organization": "org", "openai-project": "prj" });
  });

  it("calls a limit of tokens as it is told to", async () => {
    await complete({ maxTokensField: "max_completion_tokens" });
    expect(server.requests[0]?.json).toMatchObject({ max_completion_tokens: 9 });
    expect(server.requests[0]?.json).not.toHaveProperty("max_tokens");
  });

  it("goes on without usage where the server does not count", async () => {
    server.script({ kind: "stream", steps: [...openAiText("ok"), ...openAiEnd().slice(0, 1), sse("[DONE]")] });
    const { response } = await complete({ includeUsage: false });
    expect(response.usage).toMatchObject({ model: "openai/gpt-x", inputTokens: 0n, outputTokens: 0n });
    expect(server.requests[0]?.json).not.toHaveProperty("stream_options");
  });

  it("takes an error object inside the stream for what it is", async () => {
    const error = { error: { message: "secret words", type: "requests", code: "rate_limit_exceeded" } };
    server.script({ kind: "stream", steps: [sse(error)] }, { kind: "stream", steps: [...openAiText("a"), sse(error)] });
    await expect(complete()).rejects.toMatchObject({
      code: "resource_exhausted",
      details: { fault: "stream-error", reason: "rate_limit_exceeded", attempts: 2 },
    });
  });

  it("gives tool calls ids from the random port where the server gives none", async () => {
    const calls = [{ function: { name: "now", arguments: "{}" } }];
    server.script({ kind: "stream", steps: [openAiChunk({ tool_calls: calls }), ...openAiEnd("tool_calls")] });
    const { response } = await complete();
    const [part] = response.message.parts;
    expect(part?.part.case === "toolCall" && part.part.value.id).toMatch(/^call_[0-9a-f]{24}$/);
  });
});
