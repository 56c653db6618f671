import { create, fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { Seq, SessionUid } from "../base/index.ts";
import { ToolDefinitionSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { OfferedToolsSchema } from "../gen/holdfast/v1/beside_pb.ts";
import type { HostTool, ToolExecutor } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import {
  harnessCatalog,
  resumed,
  seededPorts,
  testHarness,
  TestHost,
  toolCall,
  ToolWorld,
  type HarnessRun,
  type TestHostOptions,
} from "../testing/index.ts";
import { replaySession } from "./index.ts";

const definition = (name: string, description = "") => create(ToolDefinitionSchema, { name, description, inputSchema: { type: "object" } });

/** An executor whose tools change. */
class ChangingTools implements ToolExecutor {
  offered: readonly HostTool[];

  constructor(...names: readonly string[]) {
    this.offered = names.map((name) => ({ definition: definition(name), idempotent: true }));
  }

  list = (): readonly HostTool[] => this.offered;
  find = (name: string): HostTool | undefined => this.offered.find((tool) => tool.definition.name === name);
  check = (): undefined => undefined;
  execute: ToolExecutor["execute"] = () => Promise.reject(new Error("none is called"));
}

/** Says which tools it is offered. */
const teller: HarnessRun = async (start, sink) => sink.output(start.tools?.map(({ name }) => name).join() ?? "none");

function setup(tools: ToolExecutor | undefined, run: HarnessRun = teller) {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest });
  const harnesses = { test: testHarness(run) };
  const newHost = (more: Partial<TestHostOptions> = {}) => new TestHost({ journal, ports, tools, harnesses, ...more });
  const keptAt = async (session: SessionUid, seq: number) => {
    const bytes = (await journal.readAsides({ session, fromSeq: seq as Seq, toSeq: seq as Seq })).get(seq as Seq);
    return bytes === undefined ? undefined : { sizeBytes: bytes.length, ...fromBinary(OfferedToolsSchema, bytes) };
  };
  const checks = async (session: SessionUid) => {
    const row = (await journal.get(session))!;
    const found = await Array.fromAsync(replaySession({ journal, ports, harnesses: harnessCatalog(harnesses) }, { row }));
    return found.map(({ outcome }) => outcome.kind);
  };
  return { journal, newHost, keptAt, checks };
}

const saidBy = (story: readonly string[]): string[] => story.flatMap((line) => (line.startsWith("OUTPUT ") ? [line.slice(7)] : []));

describe("the tools that a turn is offered", () => {
  it("are the host's when it starts, in their order, and none on a host without any", async () => {
    const { newHost, keptAt } = setup(new ChangingTools("b", "a"));
    await using host = newHost();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(saidBy(await host.story(session))).toEqual(["b,a"]);
    expect((await keptAt(session, 1))?.tools.map(({ name }) => name)).toEqual(["b", "a"]);

    const without = setup(undefined);
    await using bare = without.newHost();
    const other = await bare.createSession();
    await (
      await bare.begin(other, [])
    ).outcome;
    expect(saidBy(await bare.story(other))).toEqual(["none"]);
    expect(await without.keptAt(other, 1)).toBeUndefined();
  });

  it("are the recorded ones in a replay, whatever the host has then", async () => {
    const tools = new ChangingTools("a");
    const { newHost, checks } = setup(tools);
    await using host = newHost();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    tools.offered = [];
    await (
      await host.begin(session, [])
    ).outcome;
    expect(saidBy(await host.story(session))).toEqual(["a", "none"]);
    expect(await checks(session)).toEqual(["same", "same"]);
  });

  it("are kept once, however many turns are offered them, and again when they change", async () => {
    const tools = new ChangingTools(...Array.from({ length: 30 }, (_, index) => `tool_${index}`));
    const { newHost, keptAt, checks } = setup(tools);
    await using host = newHost();
    const session = await host.createSession();
    const startSeqs: number[] = [];
    const turn = async () => {
      const { startSeq, outcome } = await host.begin(session, []);
      startSeqs.push(startSeq);
      await outcome;
    };
    await turn();
    await turn();
    await turn();
    tools.offered = tools.offered.slice(1);
    await turn();
    const kept = await Promise.all(startSeqs.map((seq) => keptAt(session, seq)));
    expect(kept.map((each) => [Number(each?.sameAsSeq), each?.tools.length])).toEqual([
      [0, 30],
      [1, 0],
      [1, 0],
      [0, 29],
    ]);
    expect(kept[1]?.sizeBytes).toBeLessThan(4);
    expect(await checks(session)).toEqual(["same", "same", "same", "same"]);
    // Another host knows of no list and keeps its own.
    await using second = newHost({ hostId: "second" });
    const { startSeq, outcome } = await second.begin(session, []);
    await outcome;
    expect((await keptAt(session, startSeq))?.tools).toHaveLength(29);
  });

  it("are kept anew where the session's uid has come back with other records", async () => {
    const tools = new ChangingTools("a");
    const offered = tools.offered;
    const { journal, newHost, keptAt, checks } = setup(tools);
    await using host = newHost();
    const session = await host.createSession();
    const turn = async () => {
      const { startSeq, outcome } = await host.begin(session, []);
      await outcome;
      return startSeq;
    };
    await turn();
    await host.controller.delete(session, undefined);
    await journal.reclaim(session);
    await host.createSession({ uid: session });
    tools.offered = [];
    await turn();
    tools.offered = offered;
    const [first, second] = [await turn(), await turn()];
    expect((await keptAt(session, first))?.tools.map(({ name }) => name)).toEqual(["a"]);
    expect(await keptAt(session, second)).toMatchObject({ sameAsSeq: BigInt(first), tools: [] });
    expect(await checks(session)).toEqual(["same", "same", "same"]);
  });

  it("are the recorded ones when a turn is taken up again, and in a fork", async () => {
    const world = new ToolWorld(
      ({ clock, digest }) => createMemoryStore({ clock, digest }),
      async (start, sink) => {
        await sink.toolCall(toolCall("read", "c1"));
        await sink.output(start.tools?.map(({ name }) => name).join() ?? "none");
      },
      { read: { idempotent: true, run: async () => ({}) } },
    );
    const session = await world.crashed({ atAppend: 3, when: "before" });
    const more = new ChangingTools("read", "new");
    more.execute = world.tools.execute.bind(world.tools);
    await using host = world.host({ hostId: "second", tools: more });
    await resumed(host, session);
    expect(saidBy(await host.story(session))).toEqual(["read"]);
    const [child] = await host.controller.fork({
      parent: session,
      atSeq: 0 as Seq,
      children: ({ seed }) => [{ ...seed, uid: "child" as SessionUid }],
    });
    expect(await world.checks(session)).toEqual(["same"]);
    expect(await world.checks(child!.seed.uid)).toEqual(["same"]);
  });

  it("are as many as fit beside a record", async () => {
    const tools = new ChangingTools();
    tools.offered = Array.from({ length: 5 }, (_, index) => ({
      definition: definition(`t${index}`, "x".repeat(150_000)),
      idempotent: true,
    }));
    const { newHost } = setup(tools);
    await using host = newHost();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(saidBy(await host.story(session))).toEqual(["t0,t1,t2"]);
  });
});
