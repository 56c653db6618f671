import { describe, expect, it } from "vitest";
import { createAgentHarness, createHistoryHarness } from "../../harnesses/index.ts";
import { ToolCategoryHint } from "../../gen/roz/v1/agent_pb.ts";
import { plainEnvironment } from "../index.ts";
import { createMemoryNotes } from "../../stores/notes/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { sayingModel, type Saying } from "../../testing/agent-world.ts";
import { DoorWorld } from "../../testing/door-world.ts";
import { answering, silent, TestModel } from "../../testing/host.ts";

function world(more: Partial<ConstructorParameters<typeof DoorWorld>[0]> = {}): DoorWorld {
  return new DoorWorld({
    openJournal: ({ clock, digest }) => createMemoryStore({ clock, digest }),
    openNotes: createMemoryNotes,
    harnesses: { agent: createAgentHarness(), history: createHistoryHarness() },
    ...more,
  });
}

/** A model that says one thing after the other. */
const scripted = (...sayings: readonly Saying[]) => sayingModel((_, index) => sayings[index] ?? { text: "done" });

const PURE = ToolCategoryHint.TOOL_CATEGORY_PURE;
const look = { name: "look", description: "Looks.", category: PURE };

describe("a conversation", () => {
  it("starts, streams an answer and completes", async () => {
    const at = world({ models: new TestModel(answering("hello there, friend")) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    const started = await client.next("sessionStarted");
    expect(started).toMatchObject({ sessionId: client.session, model: "test" });
    expect(started.permissions.map(({ toolPattern, policy, category }) => [toolPattern, policy, category])).toEqual([
      ["*", "allow", "pure"],
      ["*", "require_confirmation", "physical"],
    ]);
    client.say({ case: "userMessage", value: { content: "hi", messageId: "m1" } });
    const complete = await client.next("turnComplete");
    expect(client.text).toBe("hello there, friend");
    expect(complete).toMatchObject({ messageId: "m1", stopReason: "end_turn", usage: { inputTokens: 1, outputTokens: 1 } });
    expect(await host.host.story(client.session as never)).toEqual([
      "EXECUTION_START",
      "INPUT hi",
      "MODEL_CALL",
      "OUTPUT hello there, friend",
      "USAGE",
      "END COMPLETED",
    ]);
    expect(client.seq).toBe(6);
  });

  it("has its client run tools, and tells the model what came of it", async () => {
    const model = scripted({ text: "Let me look.", calls: [["look", "c1", { at: "door" }]] }, { text: "It is open." });
    const at = world({ models: model });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [look] } });
    client.say({ case: "userMessage", value: { content: "Is the door open?", messageId: "m1" } });
    const request = await client.next("toolRequest");
    expect(request).toMatchObject({ toolCallId: "c1", toolName: "look", parameters: { at: "door" }, timeoutMs: 120_000 });
    client.say({ case: "toolResult", value: { toolCallId: "c1", success: true, result: "open", exitCode: 0, durationMs: 12n } });
    await client.next("turnComplete");
    expect(client.story()).toEqual(["started", "text Let me look.", "request look c1", "text It is open.", "complete m1 end_turn"]);
    const result = model.requests[1]!.messages.at(-1)!.parts[0]!.part;
    expect(result.value).toMatchObject({ isError: false, output: { exit_code: 0, truncated: false, duration_ms: 12 } });
    await client.next("activityUpdate", ({ state }) => state === "idle");
    expect(client.all("activityUpdate").map(({ state, detail }) => [state, detail])).toEqual([
      ["thinking", ""],
      ["calling_tool", "look"],
      ["thinking", ""],
      ["idle", ""],
    ]);
    expect(await at.checks(client.session)).toEqual(["same"]);
  });

  it("asks before a tool runs that a person has to confirm", async () => {
    const at = world({
      models: scripted({ calls: [["look", "c1", {}]] }),
      environments: [{ ...environment(), permissions: [{ tool: "look", policy: "require_confirmation" }] }],
    });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: { tools: [look] } });
    client.say({ case: "userMessage", value: { content: "go", messageId: "m1" } });
    await client.next("activityUpdate", ({ state, detail }) => state === "waiting_approval" && detail === "c1");
    client.say({ case: "permissionDecision", value: { toolCallId: "c1", approved: true } });
    await client.next("toolRequest");
    client.say({ case: "toolResult", value: { toolCallId: "c1", success: true, result: "seen" } });
    await client.next("turnComplete");
    expect(client.story()).toEqual(["started", "request look c1", "text done", "complete m1 end_turn"]);
  });

  it("cancels a turn", async () => {
    const at = world({ models: new TestModel(silent) });
    await using host = at.host();
    const client = host.client();
    client.say({ case: "start", value: {} });
    client.say({ case: "userMessage", value: { content: "hi", messageId: "m1" } });
    await client.next("activityUpdate", ({ state }) => state === "thinking");
    client.say({ case: "cancelTurn", value: { reason: "enough" } });
    expect(await client.next("turnComplete")).toMatchObject({ messageId: "m1", stopReason: "cancelled" });
    client.say({ case: "cancelSession", value: {} });
    await client.ended();
    expect(client.end).toEqual({ error: undefined });
  });
});

function environment() {
  return { ...plainEnvironment() };
}
