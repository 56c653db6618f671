/** What the Anthropic provider does of its own; the rest is in `provider-answers.test.ts`. */

import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { MessageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { textMessage, type ModelRequest } from "../spi/index.ts";
import { throughJournal } from "../testing/model-history.ts";
import { startModelServer, type ModelServer } from "../testing/model-server.ts";
import { replyText } from "../testing/model-answers.ts";
import { anthropicBlock, anthropicEnd, anthropicStart, anthropicText } from "../testing/model-streams.ts";
import { SeededRandom } from "../testing/ports.ts";
import { RecordingClock } from "../testing/recording-clock.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { createAnthropicProvider, type AnthropicProviderOptions } from "./anthropic.ts";

const HELLO: ModelRequest = { model: "anthropic/claude-x", messages: [textMessage("user", "hello")] };

describe("the Anthropic provider", () => {
  let server: ModelServer;
  beforeEach(async () => {
    server = await startModelServer();
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await server.close();
  });

  const complete = (request = HELLO, options: Partial<AnthropicProviderOptions> = {}) =>
    collectCompletion(
      createAnthropicProvider({
        baseUrl: server.anthropicBaseUrl,
        apiKey: "k",
        clock: new RecordingClock(),
        random: new SeededRandom(1),
        ...options,
      }).complete(request, { signal: new AbortController().signal }),
    );

  it("sends the body that the request maps to, and nothing of its own", async () => {
    await complete();
    expect(new TextDecoder().decode(server.requests[0]?.body)).toBe(
      '{"model":"claude-x","max_tokens":16384,"cache_control":{"type":"ephemeral"},"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}],"stream":true}',
    );
    expect(server.requests[0]?.path).toBe("/v1/messages");
    expect(server.requests[0]?.headers["anthropic-version"]).toMatch(/^\d{4}-\d{2}-\d{2}$/);
  });

  it("sends the header of a beta with the param that needs it, and with no other", async () => {
    await complete();
    expect(server.requests[0]?.headers["anthropic-beta"]).toBeUndefined();
    await complete({ ...HELLO, params: { thinking_prefix_mismatch: "drop_block" } });
    expect(server.requests[1]?.headers["anthropic-beta"]).toBe("thinking-binding-controls-2026-08-01");
  });

  it("reads neither address nor credentials from the environment", async () => {
    vi.stubEnv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    for (const name of ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"]) vi.stubEnv(name, "from-environment");
    await complete();
    expect(server.requests[0]?.headers.authorization).toBe("Bearer k");
    expect(JSON.stringify(server.requests[0]?.headers)).not.toContain("from-environment");
  });

  it("takes a limit of tokens from its options where the request has none", async () => {
    await complete(HELLO, { maxTokensDefault: 77 });
    expect(server.requests[0]?.json).toMatchObject({ max_tokens: 77 });
    expect(() =>
      createAnthropicProvider({ apiKey: "k", maxTokensDefault: 0, clock: new RecordingClock(), random: new SeededRandom(1) }),
    ).toThrow("maxTokensDefault");
  });

  it("hands thinking and tool calls back byte for byte, in their place, after a journey through the journal (I2)", async () => {
    const signature = "EqQBCkgIARABGAIiQL+/0aZ==\u2028<&>";
    const thinking = 'I "look"\nat it: 😀';
    server.script(
      {
        kind: "stream",
        steps: [
          ...anthropicStart(),
          ...anthropicBlock(0, { type: "thinking", thinking: "", signature: "" }, [
            ...Array.from(thinking, (piece) => ({ type: "thinking_delta", thinking: piece })),
            { type: "signature_delta", signature },
          ]),
          ...anthropicBlock(1, { type: "redacted_thinking", data: "b3BhcXVl+/==" }, []),
          ...anthropicText(2, "Let me see."),
          ...anthropicBlock(3, { type: "tool_use", id: "toolu_1", name: "read", input: {} }, [
            { type: "input_json_delta", partial_json: '{"b":1,"a":2}' },
          ]),
          ...anthropicEnd("tool_use", { inputTokens: 5, outputTokens: 8, reasoningTokens: 4 }),
        ],
      },
      replyText("anthropic", "done"),
    );
    const { response, facts } = await complete();
    expect(response.usage).toMatchObject({ model: "anthropic/claude-x", inputTokens: 5n, outputTokens: 8n, reasoningTokens: 4n });
    expect(facts.stopReason).toBe("tool_use");

    const result = create(MessageSchema, {
      role: "tool",
      parts: [{ part: { case: "toolResult", value: { id: "toolu_1", output: { lines: 3 } } } }],
    });
    await complete({ ...HELLO, messages: [...HELLO.messages, throughJournal(response.message), result] });
    const sent = new TextDecoder().decode(server.requests[1]?.body);
    expect(server.requests[1]?.refusal).toBeUndefined();
    expect(sent).toContain(
      `{"role":"assistant","content":[` +
        `{"type":"thinking","thinking":${JSON.stringify(thinking)},"signature":${JSON.stringify(signature)}},` +
        `{"type":"redacted_thinking","data":"b3BhcXVl+/=="},` +
        `{"type":"text","text":"Let me see."},` +
        `{"type":"tool_use","id":"toolu_1","name":"read","input":{"b":1,"a":2}}]}`,
    );
  });
});
