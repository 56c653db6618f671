/** Lines that drop, teams that are watched and turns that take long, with a client that Python's grpcio-tools makes from the proto. */

import { describe, expect, it } from "vitest";
import { flowsHome, PURE, tool } from "./support/agent-flows.ts";
import type { PythonStream } from "./support/python-client.ts";
import { answer, nextError, PythonWorld, turn } from "./support/python-world.ts";
import type { ServerProcess } from "./support/server-process.ts";

const world = PythonWorld.ofThisFile();
const look = tool("look", { category: PURE });

describe("a line that drops", () => {
  /** What both streams of a session heard, as one transcript: what came after the cursor on the first one is heard again on the second. */
  function joined(before: PythonStream, cursor: number, after: PythonStream): readonly string[] {
    const kept = before.heard.filter(({ seq = 0, kind }) => seq <= cursor && kind !== "sessionStarted" && kind !== "toolRequest");
    const text = [...kept, ...after.heard].map(({ kind, value }) => (kind === "textDelta" ? String(value["content"]) : ""));
    return [text.join(""), ...after.story().filter((words) => !words.startsWith("text") && !words.startsWith("thinking"))];
  }

  it("is taken up where it was: the open request again under its id, and then the rest", async () => {
    const stream = await world.started({ tools: [look] });
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    const { toolCallId } = await stream.next("toolRequest");
    const cursor = stream.heard.at(-1)!.seq!;
    stream.cut();
    const again = world.open({ "holdfast-session": stream.session, "holdfast-from-seq": String(cursor) });
    expect(await again.next("toolRequest")).toMatchObject({ toolCallId, parameters: { at: "door" } });
    for (let times = 1; times <= 2; times++) again.say({ toolResult: { toolCallId, success: true, result: "ajar" } });
    await again.next("turnComplete");
    expect(again.headers).toMatchObject({ "holdfast-session": stream.session });
    expect(joined(stream, cursor, again)).toEqual([
      "Let me look.It is ajar.",
      "started",
      'request look {"at":"door"}',
      "complete m end_turn",
    ]);
    again.say({ ping: {} });
    await again.next("pong");
    expect(again.all("error")).toEqual([]);
  });

  it("is given all of the open turn where the client does not say what it has seen", async () => {
    const stream = await world.started({ tools: [look] });
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    await stream.next("toolRequest");
    stream.cut();
    const again = world.open({ "holdfast-session": stream.session });
    await answer(again, "ajar");
    await again.next("turnComplete");
    const told = ["thinking m: Somebody has to look.", "text m: Let me look.", 'request look {"at":"door"}', "text m: It is ajar."];
    expect(again.story()).toEqual(["started", ...told, "complete m end_turn"]);
  });

  it("does not stop a turn that needs nothing of its client", async () => {
    const stream = await world.started();
    stream.say({ userMessage: { content: "Tell a story.", messageId: "m" } });
    await stream.next("textDelta");
    stream.cut();
    const again = world.open({ "holdfast-session": stream.session });
    await again.next("turnComplete");
    expect(again.story()).toEqual(["started", "text m: Once upon a time.", "complete m end_turn"]);
  });

  it("is survived by a turn when the server is killed too", async () => {
    const home = flowsHome();
    const server = await home.serve();
    const stream = world.python.open(server);
    stream.say({ start: { tools: [look] } });
    await stream.next("sessionStarted");
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    const { toolCallId } = await stream.next("toolRequest");
    await server.end("SIGKILL");
    expect(await stream.ended()).toMatchObject({ code: "UNAVAILABLE" });
    const again = world.python.open(await home.serve(), { "holdfast-session": stream.session });
    expect(await answer(again, "ajar")).toMatchObject({ toolCallId });
    await again.next("turnComplete");
    expect(again.story().slice(-3)).toEqual(['request look {"at":"door"}', "text m: It is ajar.", "complete m end_turn"]);
  });

  it("is told when another takes its session over", async () => {
    const stream = await world.started({ tools: [look] });
    stream.say({ userMessage: { content: "Is the door open?", messageId: "m" } });
    const { toolCallId } = await stream.next("toolRequest");
    const newer = world.open({ "holdfast-session": stream.session });
    expect(await nextError(stream)).toEqual(["taken_over", false]);
    expect(await stream.ended()).toMatchObject({ code: "OK" });
    expect(await answer(newer, "ajar")).toMatchObject({ toolCallId });
    await newer.next("turnComplete");
  });

  it.each([
    ["no_session", { "holdfast-session": "01a22dd2-0000-7000-8000-000000000000" }],
    ["invalid_argument", { "holdfast-session": "x".repeat(200) }],
  ])("cannot be taken up where there is no such session: %s", async (code, metadata) => {
    const stream = world.open(metadata);
    expect(await nextError(stream)).toEqual([code, false]);
    expect(await stream.ended()).toMatchObject({ code: "OK" });
  });
});

describe("a team", () => {
  const createTask = async ({ url }: ServerProcess): Promise<string> => {
    const body = JSON.stringify({ prompt: "Look around.", environment_id: "team" });
    const response = await fetch(`${url}/api/v1/tasks`, { method: "POST", headers: { "content-type": "application/json" }, body });
    return ((await response.json()) as { readonly id: string }).id;
  };

  it("is watched: what was before the watch, what is, each worker in its order, until all have ended", async () => {
    const task = await createTask(world.server);
    const watch = world.python.watch(world.server, task);
    expect(await watch.ended()).toMatchObject({ code: "OK" });
    const workers = Map.groupBy(watch.heard, ({ value }) => String(value["workerId"]));
    const told = [...workers].map(([id, events]) =>
      events.map(({ kind, value }) => [kind, ...Object.values(value).filter((word) => word !== id)]),
    );
    const [north] = [...workers].find(([, events]) => events.some(({ kind }) => kind === "workerToolCall"))!;
    expect(told.toSorted((a, b) => b.length - a.length || (a[2]![0] === "workerFailed" ? -1 : 1))).toEqual([
      [
        ["workerStarted", ""],
        ["workerPhase", 1, "react"],
        ["workerToolCall", "spawn"],
        ["workerPhase", 2, "react"],
        ["workerCompleted", "A hill, and a house on it."],
        ["workerExited", task],
      ],
      [
        ["workerStarted", ""],
        ["workerPhase", 1, "react"],
        ["workerFailed", "model_error"],
        ["workerExited", task],
      ],
      [
        ["workerStarted", ""],
        ["workerPhase", 1, "react"],
        ["workerCompleted", "A house."],
        ["workerExited", north],
      ],
    ]);
    const later = world.python.watch(world.server, task);
    await later.ended();
    for (const id of workers.keys()) {
      expect(later.heard.filter(({ value }) => value["workerId"] === id)).toEqual(workers.get(id));
    }
  });

  it("is NOT_FOUND where there is no such task", async () => {
    const watch = world.python.watch(world.server, "01a22dd2-0000-7000-8000-000000000000");
    expect(await watch.ended()).toMatchObject({ code: "NOT_FOUND" });
    expect(watch.heard).toEqual([]);
  });
});

describe("a turn that takes long", () => {
  it("is told to be alive after 15 seconds, with the tokens that it may use", async () => {
    const stream = await world.started({ maxContextTokens: 9_000 });
    await turn(stream, { content: "Answer late.", messageId: "m" });
    expect(stream.all("keepalive")).toMatchObject([{ tokensMax: 9_000 }]);
  });
});
