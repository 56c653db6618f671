/** Permission questions and the mode `ooda_re_act`, message by message, with a client that Python's grpcio-tools makes from the proto. */

import { describe, expect, it } from "vitest";
import { PHYSICAL, PURE, tool } from "./support/agent-flows.ts";
import type { Value } from "./support/python-client.ts";
import { answer, PythonWorld, turn } from "./support/python-world.ts";

const world = PythonWorld.ofThisFile();
const look = tool("look", { category: PURE });

describe("permissions", () => {
  const asking = { environmentId: "asking", tools: [look, tool("wipe", { category: PURE })] };

  it("sends the rules of the environment with the session", async () => {
    const stream = await world.started(asking);
    const [{ permissions }] = stream.all("sessionStarted") as [Value];
    expect((permissions as readonly Value[]).map(({ toolPattern, policy, reason }) => [toolPattern, policy, reason]).slice(0, 2)).toEqual([
      ["look", "require_confirmation", "it is private"],
      ["wipe", "block", "nothing is wiped here"],
    ]);
  });

  it.each([
    { approved: true, told: ["text m: Let me look.", 'request look {"at":"door"}', "text m: It is ajar."] },
    { approved: false, told: ["text m: Let me look.It is ajar."] },
  ])("asks before a tool runs, and goes by the answer: $approved", async ({ approved, told }) => {
    const stream = await world.started(asking);
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    const { detail: toolCallId } = await stream.next("activityUpdate", { state: "waiting_approval" });
    stream.say({ permissionDecision: { toolCallId, approved } });
    if (approved) {
      expect(await stream.next("toolRequest")).toMatchObject({ toolCallId });
      stream.say({ toolResult: { toolCallId, success: true, result: "ajar" } });
    }
    await stream.next("turnComplete");
    expect(stream.story()).toEqual(["started", "thinking m: Somebody has to look.", ...told, "complete m end_turn"]);
  });

  it("puts the same question into the inbox: whoever answers first answers it", async () => {
    const stream = await world.started(asking);
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    const { detail: toolCallId } = await stream.next("activityUpdate", { state: "waiting_approval" });
    const inbox = (await (await fetch(`${world.server.url}/v1/approvals`)).json()) as {
      readonly approvals: readonly (Value & { readonly ref: Value })[];
    };
    const question = inbox.approvals.find(({ session }) => session === stream.session);
    expect(question).toMatchObject({ ref: { tool_call_id: toolCallId }, call: { tool: "look", args: { at: "door" } } });
    const decided = await fetch(`${world.server.url}/v1/sessions/${stream.session}/approve`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...question?.ref, approved: true }),
    });
    expect(decided.status).toBe(200);
    expect(await stream.next("toolRequest")).toMatchObject({ toolCallId });
    stream.say({ permissionDecision: { toolCallId, approved: false } });
    expect(await stream.next("error")).toMatchObject({ code: "invalid_argument" });
    stream.say({ permissionDecision: { toolCallId, approved: true } });
    stream.say({ toolResult: { toolCallId, success: true, result: "ajar" } });
    await stream.next("turnComplete");
    expect(stream.all("error")).toHaveLength(1);
  });

  it("never asks about what is blocked", async () => {
    const stream = await world.started(asking);
    await turn(stream, { content: "Wipe it.", messageId: "m" });
    expect(stream.story()).toEqual(["started", "text m: It stays.", "complete m end_turn"]);
    expect(stream.all("activityUpdate").map(({ state }) => state)).not.toContain("waiting_approval");
  });
});

describe("the mode ooda_re_act", () => {
  const arm = { environmentId: "arm", tools: [tool("pose", { category: PURE }), tool("move", { category: PHYSICAL }), tool("nudge")] };

  it("observes before each step, asks before it acts, and shows itself while it does", async () => {
    const stream = await world.started(arm);
    stream.say({ userMessage: { content: "Move the arm.", messageId: "m", aiMode: "ooda_re_act" } });
    await answer(stream, "the arm is at 1");
    const { detail } = await stream.next("activityUpdate", { state: "waiting_approval" });
    stream.say({ permissionDecision: { toolCallId: detail, approved: true } });
    const { toolCallId } = await stream.next("toolRequest");
    expect(toolCallId).toBe(detail);
    expect(await stream.first("presenceHint", { level: "full" })).toMatchObject({ reason: "move acts on the world" });
    stream.say({ toolResult: { toolCallId, success: true, result: "moved" } });
    await answer(stream, "the arm is at 3");
    await stream.next("turnComplete");
    await stream.first("presenceHint", { level: "hidden" });
    expect(stream.story()).toEqual([
      "started",
      "request pose {}",
      "text m: I move it.",
      'request move {"to":3}',
      "request pose {}",
      "text m: It is at 3.",
      "complete m end_turn",
    ]);
  });

  it("acts physically one call at a time", async () => {
    const stream = await world.started(arm);
    stream.say({ userMessage: { content: "Move both arms.", messageId: "m", aiMode: "ooda" } });
    for (const result of ["both arms are at 1", "moved", "one arm is at 2"]) await answer(stream, result);
    await stream.next("turnComplete");
    expect(stream.story()).toEqual([
      "started",
      "request pose {}",
      'request nudge {"arm":1}',
      "request pose {}",
      "text m: One has moved.",
      "complete m end_turn",
    ]);
  });

  it("does not act on what it saw too long ago: it looks again, and gives up where that goes on", async () => {
    const stream = await world.started({ ...arm, environmentId: "hasty" });
    stream.say({ userMessage: { content: "Move both arms.", messageId: "m-1", aiMode: "ooda_react" } });
    for (const result of ["both arms are at 1", "one arm is at 2"]) await answer(stream, result);
    await stream.next("turnComplete");
    stream.say({ userMessage: { content: "Move both arms.", messageId: "m-2", aiMode: "ooda_react" } });
    for (let cycle = 1; cycle <= 3; cycle++) await answer(stream, "both arms are at 1");
    await stream.next("turnComplete");
    const pose = "request pose {}";
    const first = [pose, pose, "text m-1: One has moved.", "complete m-1 end_turn"];
    expect(stream.story()).toEqual(["started", ...first, pose, pose, pose, "error agent_error", "complete m-2 error"]);
  });

  it("stops where it sees nothing", async () => {
    const stream = await world.started(arm);
    stream.say({ userMessage: { content: "Move the arm.", messageId: "m", aiMode: "ooda_re_act" } });
    const { toolCallId } = await stream.next("toolRequest");
    stream.say({ toolResult: { toolCallId, success: false, result: "the camera is off" } });
    await stream.next("turnComplete");
    expect(stream.story()).toEqual(["started", "request pose {}", "error agent_error", "complete m error"]);
  });

  it("is not react, in which nothing is looked at and physical tools are not on offer", async () => {
    const stream = await world.started(arm);
    await turn(stream, { content: "Move the arm.", messageId: "m" });
    expect(stream.story()).toEqual(["started", "text m: I may not.", "complete m end_turn"]);
  });
});
