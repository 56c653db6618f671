import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { SessionUid } from "../../base/index.ts";
import { IdentityRefSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { messageText } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import {
  answering,
  resultWords,
  silent,
  SPAWN_AGENTS,
  spawnCall,
  SpawnWorld,
  TestModel,
  TestTools,
  type SpawningHost,
  type SpawnWorldOptions,
} from "../../testing/index.ts";
import { DEPTH_ANNOTATION, SPAWNED_BY_ANNOTATION, TASK_ANNOTATION } from "./annotations.ts";

function newWorld(more: Partial<SpawnWorldOptions> = {}): SpawnWorld {
  const harnesses = { test: SPAWN_AGENTS.boss, ...SPAWN_AGENTS, ...more.harnesses };
  const tools = new TestTools({ send: async () => ({ output: { sent: true } }) });
  return new SpawnWorld({ openJournal: createMemoryStore, tools, models: new TestModel(silent), ...more, harnesses });
}

/** Runs one turn of a new session to wherever it goes. */
async function ran(host: SpawningHost, input: string): Promise<{ readonly session: SessionUid; readonly outcome: string }> {
  const session = await host.createSession();
  const outcome = await (await host.begin(session, [input])).outcome;
  return { session, outcome: outcome.kind === "ended" ? outcome.state : outcome.kind };
}

describe("spawn", () => {
  it("runs one turn of a session of its own, and answers with its last words", async () => {
    const world = newWorld();
    await using host = world.host();
    const identity = create(IdentityRefSchema, { principal: "user://ada" });
    const session = await host.createSession({ project: "shop", model: "m", identity });
    await (
      await host.begin(session, ["echo two things"])
    ).outcome;
    const [worker, ...others] = await world.workers(session);
    expect(others).toEqual([]);
    expect(worker!.seed).toMatchObject({
      uid: world.worker(session, "c1"),
      project: "shop",
      harness: "echo",
      model: "m",
      identity: { principal: "user://ada" },
      annotations: { [SPAWNED_BY_ANNOTATION]: session, [TASK_ANNOTATION]: session, [DEPTH_ANNOTATION]: "1" },
    });
    expect(await host.story(worker!.seed.uid)).toEqual([
      "EXECUTION_START",
      "INPUT two things",
      "OUTPUT you said two things",
      "END COMPLETED",
    ]);
    const records = await host.records(session);
    expect(records.map(({ event }) => event?.body.case)).toEqual(["executionStart", "message", "tool", "result", "message", "end"]);
    expect(records[3]!.event?.body.value).toMatchObject({ output: { worker: worker!.seed.uid, state: "COMPLETED" } });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT you said two things");
  });

  it("starts nothing in a replay: the recorded result is served", async () => {
    const models = new TestModel(answering("fine"));
    const world = newWorld({ models });
    await using host = world.host();
    const { session } = await ran(host, "thinker how are you");
    const requests = models.requests.length;
    expect(await world.checks(session)).toEqual(["same"]);
    expect(await world.checks(world.worker(session, "c1"))).toEqual(["same"]);
    expect((await world.workers(session)).length).toBe(1);
    expect(models.requests.length).toBe(requests);
  });

  it("runs the calls of one message at once", async () => {
    const all = Promise.withResolvers<void>();
    let running = 0;
    const world = newWorld({
      harnesses: {
        test: async (_, sink) => {
          await Promise.all(["a", "b", "c"].map((id) => sink.toolCall(spawnCall(id, { agent: "meeting", prompt: id }))));
        },
        meeting: async (_, sink) => {
          running += 1;
          if (running === 3) all.resolve();
          await all.promise;
          await sink.output("met");
        },
      },
    });
    await using host = world.host();
    const { session, outcome } = await ran(host, "");
    expect(outcome).toBe("COMPLETED");
    expect((await world.workers(session)).length).toBe(3);
  });

  it("lets a worker spawn too: the tree has one root", async () => {
    const world = newWorld();
    await using host = world.host();
    const { session } = await ran(host, "boss echo deep");
    const child = world.worker(session, "c1");
    const [grandchild] = await world.workers(child);
    expect(grandchild!.seed.annotations).toEqual({
      [SPAWNED_BY_ANNOTATION]: child,
      [TASK_ANNOTATION]: session,
      [DEPTH_ANNOTATION]: "2",
    });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT you said deep");
  });

  it("cuts an answer over its limit, and says so", async () => {
    const world = newWorld({ limits: { answerBytesMax: 12 } });
    await using host = world.host();
    const { session: fits } = await ran(host, "echo abc");
    expect((await host.story(fits)).at(-2)).toBe("OUTPUT you said abc");
    const { session } = await ran(host, "echo ab€");
    expect((await host.story(session)).at(-2)).toBe(
      "OUTPUT you said ab|[the answer takes 14 bytes and was cut; the worker's session has the whole]",
    );
  });
});

describe("what a call is refused for, in words that a model can read", () => {
  const said = async (host: SpawningHost, input: string): Promise<string> => {
    const { session } = await ran(host, input);
    return (await host.story(session)).at(-2)!.slice("OUTPUT failed: nothing was spawned: ".length);
  };

  it("a prompt over the limit", async () => {
    await using host = newWorld({ limits: { promptBytesMax: 4 } }).host();
    expect(await said(host, "echo abc€")).toBe("the prompt takes 6 bytes; at most 4 are allowed");
    expect((await host.story((await ran(host, "echo abcd")).session)).at(-2)).toBe("OUTPUT you said abcd");
  });

  it("a depth over the limit", async () => {
    await using host = newWorld({ limits: { depthMax: 2 } }).host();
    expect((await host.story((await ran(host, "boss echo deep")).session)).at(-2)).toBe("OUTPUT you said deep");
    const { session } = await ran(host, "boss boss echo deeper");
    expect((await host.story(session)).at(-2)).toBe(
      "OUTPUT failed: nothing was spawned: this session is 2 spawns deep already, and no deeper one is allowed",
    );
  });

  it("children over the limit, over all turns, each key once and refused ones not counted", async () => {
    const world = newWorld({
      limits: { childrenMax: 3, promptBytesMax: 10 },
      harnesses: {
        test: async ({ executionId, inputs }, sink) => {
          const ids = messageText(inputs[0]!).split(" ");
          const call = (id: string) => {
            const prompt = id.startsWith("long") ? "a prompt that is too long" : id;
            return sink.toolCall({ ...spawnCall(id, { agent: "echo", prompt }), idempotencyKey: `${executionId}/${id}` });
          };
          await sink.output((await Promise.all(ids.map(call))).map((result) => (result.isError ? "no" : "yes")).join(" "));
        },
      },
    });
    await using host = world.host();
    const session = await host.createSession();
    await (
      await host.begin(session, ["a long1 b"])
    ).outcome;
    await (
      await host.begin(session, ["c d long2"])
    ).outcome;
    await using next = world.host({ hostId: "next" });
    await (
      await next.begin(session, ["e"])
    ).outcome;
    const outputs = (await host.story(session)).filter((line) => line.startsWith("OUTPUT"));
    expect(outputs).toEqual(["OUTPUT yes no yes", "OUTPUT yes no no", "OUTPUT no"]);
    expect((await world.workers(session)).length).toBe(3);
  });

  it("a name that is taken", async () => {
    const world = newWorld({
      harnesses: {
        test: async (_, sink) => {
          await sink.output(resultWords(await sink.toolCall(spawnCall("a", { agent: "echo", prompt: "x", name: "scout" }))));
          await sink.output(resultWords(await sink.toolCall(spawnCall("b", { agent: "echo", prompt: "y", name: "scout" }))));
        },
      },
    });
    await using host = world.host();
    const { session } = await ran(host, "");
    const [worker] = await world.workers(session);
    expect(worker!.seed.name).toBe("scout");
    expect((await host.story(session)).filter((line) => line.startsWith("OUTPUT"))).toEqual([
      "OUTPUT you said x",
      "OUTPUT failed: nothing was spawned: another session has this name; give another one, or none",
    ]);
  });

  it("an agent that the host has no longer", async () => {
    const world = newWorld();
    const { echo: _, ...harnesses } = world.harnesses;
    await using host = world.host({ harnesses });
    expect(await said(host, "echo x")).toBe("this host cannot serve the agent echo now");
  });
});
