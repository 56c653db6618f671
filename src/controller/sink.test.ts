import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { HoldfastError, SILENT_LOG } from "../base/index.ts";
import { ToolSpecSchema } from "../gen/agentsessions/v1/harness_pb.ts";
import { EventKind } from "../gen/agentsessions/v1/common_pb.ts";
import type { AppendRequest, JournalStore } from "../journal/index.ts";
import { Mediation, textMessage, type ToolSpec } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { seededPorts, testHarness, TestHost, TestModel } from "../testing/index.ts";

/** A store whose appends that `holds` picks are made only when they are let go. */
function holdingStore(journal: JournalStore, holds: (request: AppendRequest) => boolean): { letGo: () => void; held: AppendRequest[] } {
  const held: AppendRequest[] = [];
  let letGo: () => void = () => undefined;
  const open = new Promise<void>((resolve) => (letGo = resolve));
  const append = journal.append.bind(journal);
  let queue: Promise<unknown> = Promise.resolve();
  journal.append = (request, options) => {
    const holding = holds(request);
    if (holding) held.push(request);
    const result = queue.then(() => (holding ? open : undefined)).then(() => append(request, options));
    queue = result.catch(() => undefined);
    return result;
  };
  return { letGo, held };
}

const isOutput = (request: AppendRequest) => request.events.some(({ event }) => event.kind === EventKind.EVENT_OUTPUT);

function tools(...mediations: Mediation[]): ToolSpec[] {
  return mediations.map((mediation, index) => create(ToolSpecSchema, { name: `t${index}`, mediation }));
}

function setup(toolSpecs: ToolSpec[]) {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const hold = holdingStore(journal, isOutput);
  let served = false;
  const model = new TestModel();
  const harness = testHarness(
    async (_, sink) => {
      await sink.model({ model: "test", messages: [] });
      served = true;
      await sink.model({ model: "test", messages: [] });
    },
    { tools: toolSpecs },
  );
  const host = new TestHost({ journal, ports, harnesses: { test: harness }, models: model });
  return { host, model, hold, wasServed: () => served };
}

describe("serving a model's result", () => {
  it("waits for durability when the harness can act by itself", async () => {
    const { host, hold, wasServed } = setup(tools(Mediation.CONTROLLER_MEDIATED, Mediation.IN_HARNESS_REPORTED));
    const turn = await host.begin(await host.createSession(), []);
    await expect.poll(() => hold.held.length).toBe(1);
    expect(wasServed()).toBe(false);
    hold.letGo();
    expect(await turn.outcome).toMatchObject({ state: "COMPLETED" });
  });

  it("may come early when it acts through the host only; the next effect still waits for what came before it", async () => {
    const { host, hold, model, wasServed } = setup(tools(Mediation.CONTROLLER_MEDIATED, Mediation.REQUIRES_APPROVAL));
    const turn = await host.begin(await host.createSession(), []);
    await expect.poll(wasServed).toBe(true);
    for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve));
    expect(model.requests).toHaveLength(1);
    hold.letGo();
    expect(await turn.outcome).toMatchObject({ state: "COMPLETED" });
    expect(model.requests).toHaveLength(2);
  });
});

describe("a store that fails", () => {
  it("stops the turn at once: no effect after it, whatever the harness catches, and nothing is claimed", async () => {
    const ports = seededPorts();
    const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    const append = journal.append.bind(journal);
    journal.append = async (request, options) => {
      if (isOutput(request)) throw new HoldfastError("unavailable", "journal: the disk is full");
      return append(request, options);
    };
    const model = new TestModel();
    const harness = testHarness(async (_, sink) => {
      const request = { model: "test", messages: [textMessage("user", "q")] };
      for (let attempt = 0; attempt < 5; attempt++) await sink.model(request).catch(() => undefined);
    });
    await using host = new TestHost({ journal, ports, harnesses: { test: harness }, models: model });
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    expect(await turn.outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" }, lastSeq: 2 });
    expect(model.requests).toHaveLength(1);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "MODEL_CALL"]);
  });
});
