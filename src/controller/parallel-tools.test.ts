import { describe, expect, it } from "vitest";
import { createPlacedHarness } from "../placement/index.ts";
import { describeHarness, Resumability, textMessage } from "../spi/index.ts";
import { createMemoryBlobStore } from "../stores/blobs/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import {
  gatedCall,
  MemoryRuntime,
  resumed,
  seededPorts,
  type RunWithMemory,
  type TestTools,
  toolCall,
  ToolWorld,
  type HarnessRun,
} from "../testing/index.ts";

const newWorld = (run: HarnessRun, tools: ConstructorParameters<typeof TestTools>[0]): ToolWorld =>
  new ToolWorld(({ clock, digest }) => createMemoryStore({ clock, digest }), run, tools);

const answer = (text: string) => async () => ({ output: { text } });

describe("parallel tool calls", () => {
  /** Tools that finish when they are told to, in whatever order. */
  function held() {
    const ends = new Map<string, PromiseWithResolvers<void>>();
    const endOf = (id: string) => {
      const end = ends.get(id) ?? Promise.withResolvers<void>();
      ends.set(id, end);
      return end;
    };
    return { endOf, tool: async (call: { id: string }) => (await endOf(call.id).promise, { output: { id: call.id } }) };
  }

  it("record their intents in the order asked, their results as they come, and replay in that order", async () => {
    const { endOf, tool } = held();
    const at = newWorld(
      async (_, sink) => {
        await Promise.all(
          ["a", "b", "c"].map(async (id) => {
            await sink.toolCall(toolCall("work", id));
            await sink.output(`done ${id}`);
          }),
        );
      },
      { work: tool },
    );
    await using host = at.host();
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    for (const id of ["c", "a", "b"]) {
      endOf(id).resolve();
      await new Promise(setImmediate);
    }
    await turn.outcome;
    const order = ["c", "a", "b"].flatMap((id) => [`TOOL_RESULT ${id}`, `OUTPUT done ${id}`]);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL a", "TOOL_CALL b", "TOOL_CALL c", ...order, "END COMPLETED"]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("commit the intents of a group in one append", async () => {
    const at = newWorld(async (_, sink) => void (await Promise.all(["a", "b"].map((id) => sink.toolCall(toolCall("work", id))))), {
      work: answer("x"),
    });
    await using host = at.host();
    const session = await host.createSession();
    const commits: number[] = [];
    at.journal.watch(session, (records) => commits.push(records.length));
    await (
      await host.begin(session, [])
    ).outcome;
    expect(commits.slice(0, 2)).toEqual([1, 2]);
  });

  it("do not take each other down, and what runs is waited for when the harness throws", async () => {
    const { endOf, tool } = held();
    const at = newWorld(
      async (_, sink) => {
        await Promise.all([
          sink.toolCall(toolCall("work", "a")),
          sink.toolCall(toolCall("bad", "b")),
          sink.toolCall(toolCall("none", "c")),
        ]);
      },
      {
        work: tool,
        bad: async () => {
          throw new Error("no");
        },
      },
    );
    await using host = at.host();
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    await new Promise(setImmediate);
    endOf("a").resolve();
    expect(await turn.outcome).toMatchObject({ kind: "interrupted", error: { code: "failed_precondition" } });
    const story = await host.story(session);
    expect(story.slice(0, 4)).toEqual(["EXECUTION_START", "TOOL_CALL a", "TOOL_CALL b", "TOOL_RESULT b 2"]);
    expect(story.slice(4)).toEqual(["TOOL_RESULT a", "ERROR 9"]);
  });

  it("are over before a model is asked", async () => {
    const { endOf, tool } = held();
    const at = newWorld(
      async (_, sink) => {
        const call = sink.toolCall(toolCall("work", "a"));
        await sink.model({ model: "test", messages: [textMessage("user", "x")] });
        await call;
      },
      { work: tool },
    );
    await using host = at.host();
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    await new Promise(setImmediate);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL a"]);
    endOf("a").resolve();
    await turn.outcome;
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "TOOL_CALL a",
      "TOOL_RESULT a",
      "MODEL_CALL",
      "OUTPUT hello",
      "END COMPLETED",
    ]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("recover each for itself", async () => {
    const at = newWorld(
      async (_, sink) => {
        await Promise.all([
          sink.toolCall(toolCall("safe", "a")),
          sink.toolCall(toolCall("pay", "b")),
          sink.toolCall(toolCall("safe", "c")),
        ]);
      },
      { safe: { idempotent: true, run: answer("x") }, pay: answer("y") },
    );
    const session = await at.crashed({ atAppend: 3, when: "after" });
    await using host = at.host({ hostId: "second" });
    at.tools.ran.length = 0;
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(at.tools.ran).not.toContain("b");
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("let a harness that asks for less than is recorded go on, to diverge", async () => {
    let asksAll = true;
    const at = newWorld(
      async (_, sink) => {
        const ids = asksAll ? ["a", "b"] : ["a"];
        await Promise.all(ids.map((id) => sink.toolCall(toolCall("work", id))));
        await sink.output("after");
      },
      { work: answer("x") },
    );
    await using host = at.host();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    asksAll = false;
    const checking = at.checks(session);
    for (let wait = 0; wait < 20; wait++) {
      await new Promise(setImmediate);
      at.ports.clock.advance(1_000);
    }
    expect(await checking).toEqual(["diverged: the harness asks for an output where a tool call is recorded"]);
  });
});

describe("calls that need a decision", () => {
  it("are for harnesses that keep nothing in memory", async () => {
    const at = newWorld(() => Promise.resolve(), { pay: answer("x") });
    const descriptor = describeHarness({ id: "m", version: "1", capabilities: { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT } });
    const run: RunWithMemory = async (_, __, sink) => void (await sink.toolCall(gatedCall("pay", "a")));
    const runtime = new MemoryRuntime({ describe: () => descriptor, run, captures: createMemoryBlobStore(seededPorts()) });
    const placed = [createPlacedHarness({ name: "test", source: "static", runtime, sandboxed: true })];
    await using host = at.host({ harnesses: {}, placed });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "interrupted", error: { code: "failed_precondition" } });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "ERROR 9"]);
  });
});
