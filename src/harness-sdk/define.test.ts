import { describe, expect, it } from "vitest";
import { ApprovalParkedError, HoldfastError, isParkUnwind, type EventSink, type ToolCall } from "../spi/index.ts";
import { textResponse } from "../testing/host.ts";
import { PARK, probeStart } from "../testing/harness-wire/probe-host.ts";
import { createRecordingSink } from "../testing/recording-sink.ts";
import {
  defineHarness,
  Mediation,
  messageText,
  Resumability,
  textMessage,
  toolCallsOf,
  toolResult,
  toolResultMessage,
  type HarnessDefinition,
} from "./index.ts";

const signal = new AbortController().signal;

/** A harness with the given run, run once; what its sink was asked. */
async function ran(
  run: HarnessDefinition["run"],
  init: Partial<HarnessDefinition> = {},
  sink = createRecordingSink({ model: () => textResponse("hi") }),
) {
  await defineHarness({ id: "x", version: "1", ...init, run }).run(probeStart(""), sink, { signal });
  return sink.effects;
}

describe("a defined harness", () => {
  it("is replayed from history and safe to fork, unless it says otherwise", async () => {
    const run = async (): Promise<void> => undefined;
    const plain = await defineHarness({ id: "x", version: "2", run }).describe();
    expect(plain).toMatchObject({ id: "x", version: "2", models: [], tools: [] });
    expect(plain.capabilities).toMatchObject({ resumability: Resumability.STATELESS_REPLAY, forkSafe: true, requiresGpu: false });
    const capabilities = { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT, streaming: true };
    const other = await defineHarness({ id: "x", version: "", capabilities, run }).describe();
    expect(other.capabilities).toMatchObject({ resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT, forkSafe: false, streaming: true });
  });

  it("has an id, and one tool of each name", () => {
    const run = async (): Promise<void> => undefined;
    expect(() => defineHarness({ id: "", version: "1", run })).toThrow(/^id: must name the harness/);
    const tool = { name: "t", mediation: Mediation.CONTROLLER_MEDIATED };
    expect(() => defineHarness({ id: "x", version: "1", tools: [tool, tool], run })).toThrow(/^tools: must have one entry for each name/);
  });

  it("asks the session's model for what it leaves out", async () => {
    const effects = await ran(async (_start, sink) => {
      await sink.model({ messages: [textMessage("user", "q")], tools: [{ name: "t", description: "d", inputSchema: { type: "object" } }] });
      await sink.usage({ inputTokens: 3n });
    });
    expect(effects).toMatchObject([
      {
        kind: "model",
        request: { model: "test", tools: [{ $typeName: "agentsessions.v1.ToolDefinition", name: "t", inputSchema: { type: "object" } }] },
      },
      { kind: "usage", usage: { model: "", inputTokens: 3n, outputTokens: 0n, reasoningTokens: 0n } },
    ]);
  });

  it("calls tools under ids that are the same whenever the turn is run again", async () => {
    const tools = [{ name: "pay", mediation: Mediation.REQUIRES_APPROVAL }];
    const calls = async (): Promise<ToolCall[]> => {
      const seen: ToolCall[] = [];
      const sink = createRecordingSink({ tool: (call) => (seen.push(call), toolResult({ id: call.id })) });
      await ran(
        async (_start, own) => {
          await own.toolCall({ tool: "pay", args: { cents: 5 } });
          await own.toolCall({ tool: "pay", idempotencyKey: "once" });
          await own.toolCall({ tool: "look", mediation: Mediation.CONTROLLER_MEDIATED, id: "own" });
        },
        { tools },
        sink,
      );
      return seen;
    };
    const seen = await calls();
    expect(seen).toMatchObject([
      { id: "turn-1-1", idempotencyKey: "turn-1-1", mediation: Mediation.REQUIRES_APPROVAL, args: { cents: 5 } },
      { id: "turn-1-2", idempotencyKey: "once", mediation: Mediation.REQUIRES_APPROVAL },
      { id: "own", idempotencyKey: "own", mediation: Mediation.CONTROLLER_MEDIATED },
    ]);
    expect(await calls()).toEqual(seen);
  });

  it("refuses a tool that nobody declared, before the host is asked", async () => {
    const sink = createRecordingSink({ tool: (call) => toolResult({ id: call.id }) });
    const asking = (tool: string) => ran(async (_start, own) => void (await own.toolCall({ tool })), {}, sink);
    const message = 'tool "pay" is not declared by the harness; add it to its tools, or pass mediation';
    await expect(asking("pay")).rejects.toMatchObject({ code: "invalid_argument", field: "tool", message });
    await expect(asking("a secret\n")).rejects.toMatchObject({ message: expect.not.stringContaining("secret") as string });
  });

  it("lets a park pass, and is not completed where it swallows one", async () => {
    const sink: EventSink = { ...createRecordingSink(), toolCall: () => Promise.reject(new ApprovalParkedError(PARK)) };
    const tools = [{ name: "pay", mediation: Mediation.REQUIRES_APPROVAL }];
    const harness = (run: HarnessDefinition["run"]) =>
      defineHarness({ id: "x", version: "1", tools, run }).run(probeStart(""), sink, { signal });
    const passed = await harness(async (_start, own) => void (await own.toolCall({ tool: "pay" }))).catch((error: unknown) => error);
    expect(isParkUnwind(passed, PARK)).toBe(true);
    const swallowed = await harness(async (_start, own) => void (await own.toolCall({ tool: "pay" }).catch(() => undefined))).catch(
      (error: unknown) => error,
    );
    expect(swallowed).toBeInstanceOf(HoldfastError);
    expect(swallowed).toMatchObject({ code: "failed_precondition", message: expect.stringContaining("must let the park pass") as string });
  });
});

describe("messages without the protobuf library", () => {
  it("are those of the contract", () => {
    const asked = textMessage("user", "one");
    expect(asked).toEqual({ $typeName: "agentsessions.v1.Message", role: "user", parts: [expect.anything()] });
    const result = toolResult({ id: "c", output: { ok: true } });
    const message = toolResultMessage([result]);
    expect([message.role, message.parts[0]?.part]).toEqual(["tool", { case: "toolResult", value: result }]);
    const call: ToolCall = { $typeName: "agentsessions.v1.ToolCall", id: "c", tool: "t", mediation: 0, idempotencyKey: "" };
    const mixed = {
      ...asked,
      parts: [...asked.parts, { $typeName: "agentsessions.v1.Part", part: { case: "toolCall", value: call } } as const],
    };
    expect([messageText(mixed), toolCallsOf(mixed)]).toEqual(["one", [call]]);
  });
});
