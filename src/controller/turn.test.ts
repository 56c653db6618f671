import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { executionIdOf, SILENT_LOG, type HoldfastError, type Seq } from "../base/index.ts";
import { IdentityRefSchema, ToolResultSchema, UsageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { textMessage, type Harness, type ModelChunk } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { answering, seededPorts, silent, testHarness, TestHost, TestModel, type TestHostOptions } from "../testing/index.ts";

function newHost(options: Partial<TestHostOptions> & { readonly harness: Harness }): TestHost {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  return new TestHost({ journal, ports, harnesses: { test: options.harness }, ...options });
}

const oneCall = testHarness(async (start, sink) => {
  const response = await sink.model({ model: "test", messages: start.inputs });
  await sink.usage(response.usage);
});

describe("a turn", () => {
  it("journals its start, its inputs, each effect in order, and END", async () => {
    await using host = newHost({ harness: oneCall });
    const session = await host.createSession();
    const turn = await host.begin(session, ["hi", "there"]);
    expect(await turn.outcome).toEqual({ kind: "ended", state: "COMPLETED", lastSeq: 7 });
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "INPUT hi",
      "INPUT there",
      "MODEL_CALL",
      "OUTPUT hello",
      "USAGE",
      "END COMPLETED",
    ]);
  });

  it("stamps host-owned fields: execution id, time, schema version, and who acted", async () => {
    const principal = create(IdentityRefSchema, { principal: "agent://a" });
    const caller = create(IdentityRefSchema, { principal: "user://u" });
    await using host = newHost({ harness: oneCall });
    const session = await host.createSession({ identity: principal });
    const turn = await host.begin(session, ["hi"], { caller });
    await turn.outcome;
    for (const { event } of await host.records(session)) {
      expect(event?.executionId).toBe(turn.executionId);
      expect(event?.schemaVersion).toBe(1);
      expect(event?.ts?.seconds).toBe(BigInt(Date.UTC(2026, 0, 1) / 1000));
      expect(event?.actor?.principal).toBe(event?.body.case === "message" && event.body.value.role === "user" ? "user://u" : "agent://a");
    }
  });

  it("records everything that recovery needs in its start", async () => {
    await using host = newHost({ harness: oneCall });
    const session = await host.createSession();
    const config = new Uint8Array([0, 255, 7]);
    await (
      await host.begin(session, ["a", "b"], { config, resumeFromSeq: 9007199254740993n })
    ).outcome;
    const [start] = await host.records(session);
    expect(start?.event?.body.value).toMatchObject({
      config,
      resumeFromSeq: 9007199254740993n,
      inputCount: 2n,
      harness: "test",
      harnessVersion: "1",
    });
  });

  it("makes the intent durable before the model is called (I7)", async () => {
    let atCall: string[] = [];
    const model = new TestModel(async function* (): AsyncGenerator<ModelChunk, void, undefined> {
      atCall = await host.story(session);
      yield* answering("ok")();
    });
    await using host = newHost({ harness: oneCall, models: model });
    const session = await host.createSession();
    await (
      await host.begin(session, ["hi"])
    ).outcome;
    expect(atCall).toEqual(["EXECUTION_START", "INPUT hi", "MODEL_CALL"]);
    expect(model.requests).toHaveLength(1);
  });

  it("may have no input at all", async () => {
    await using host = newHost({ harness: testHarness(async (_, sink) => sink.output("alone")) });
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(await host.story(session)).toEqual(["EXECUTION_START", "OUTPUT alone", "END COMPLETED"]);
  });

  it("gives the harness the whole prefix before it, and nothing of itself", async () => {
    const seen: string[][] = [];
    const harness = testHarness(async (start, sink) => {
      const texts: string[] = [];
      for await (const page of start.history.read()) for (const event of page.events) texts.push(event.body.case ?? "");
      seen.push(texts);
      await sink.output("x");
    });
    await using host = newHost({ harness });
    const session = await host.createSession();
    for (let turn = 0; turn < 3; turn++) await (await host.begin(session, ["q"])).outcome;
    const one = ["executionStart", "message", "message", "end"];
    expect(seen).toEqual([[], one, [...one, ...one]]);
  });

  it("serialises effects that a harness asks for at once: nothing comes between MODEL_CALL and OUTPUT", async () => {
    const harness = testHarness(async (_, sink) => {
      const request = { model: "test", messages: [textMessage("user", "q")] };
      await Promise.all([sink.model(request), sink.output("between"), sink.model(request)]);
    });
    await using host = newHost({ harness });
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "MODEL_CALL",
      "OUTPUT hello",
      "OUTPUT between",
      "MODEL_CALL",
      "OUTPUT hello",
      "END COMPLETED",
    ]);
  });

  it("hands out copies: what a harness changes afterwards changes no record", async () => {
    const usage = create(UsageSchema, { model: "test", inputTokens: 5n });
    const harness = testHarness(async (_, sink) => {
      const response = await sink.model({ model: "test", messages: [] });
      const [part] = response.message.parts;
      if (part?.part.case === "text") part.part.value.text = "forged";
      const recorded = sink.usage(usage);
      usage.inputTokens = 99n;
      await recorded;
    });
    await using host = newHost({ harness });
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(await host.story(session)).toContain("OUTPUT hello");
    const record = (await host.records(session)).find(({ event }) => event?.body.case === "usage");
    expect(record?.event?.body.value).toMatchObject({ inputTokens: 5n });
  });

  it("records the results of tools that the harness ran itself, and refuses host-owned fields in them", async () => {
    const faults: unknown[] = [];
    const harness = testHarness(async (_, sink) => {
      await sink.report(create(ToolResultSchema, { id: "c1", output: { ok: true } }));
      await sink.report(create(ToolResultSchema, { id: "c2", approvalRequestSeq: 3n })).catch((error: unknown) => faults.push(error));
      await sink.report(create(ToolResultSchema, {})).catch((error: unknown) => faults.push(error));
    });
    await using host = newHost({ harness });
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_RESULT c1", "END COMPLETED"]);
    expect(faults.map((fault) => (fault as HoldfastError).code)).toEqual(["invalid_argument", "invalid_argument"]);
  });
});

describe("beginning a turn", () => {
  it("is refused while another one runs, and leaves nothing", async () => {
    await using host = newHost({ harness: oneCall, models: new TestModel(silent) });
    const session = await host.createSession();
    const turn = await host.begin(session, ["first"]);
    await expect(host.begin(session, ["second"])).rejects.toMatchObject({ code: "aborted" });
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    await turn.outcome;
    expect(await host.story(session)).not.toContain("INPUT second");
  });

  it("happens only at the expected head; 0 means an empty journal", async () => {
    await using host = newHost({ harness: oneCall });
    const session = await host.createSession();
    await expect(host.begin(session, ["x"], { expectedLastSeq: 1 as Seq })).rejects.toMatchObject({ code: "aborted" });
    expect(await host.story(session)).toEqual([]);
    const turn = await host.begin(session, ["x"], { expectedLastSeq: 0 as Seq });
    const { lastSeq } = await turn.outcome;
    await expect(host.begin(session, ["y"], { expectedLastSeq: 0 as Seq })).rejects.toMatchObject({ code: "aborted" });
    await (
      await host.begin(session, ["y"], { expectedLastSeq: lastSeq })
    ).outcome;
    expect(await host.story(session)).toHaveLength(12);
  });

  it("starts a new turn on an interrupted session; the old one stays as it was", async () => {
    let fail = true;
    const harness = testHarness(async (_, sink) => {
      if (fail) throw new Error("broken");
      await sink.output("fine");
    });
    await using host = newHost({ harness });
    const session = await host.createSession();
    await (
      await host.begin(session, ["one"])
    ).outcome;
    fail = false;
    await (
      await host.begin(session, ["two"])
    ).outcome;
    expect(await host.story(session)).toEqual([
      "EXECUTION_START",
      "INPUT one",
      "ERROR 13",
      "EXECUTION_START",
      "INPUT two",
      "OUTPUT fine",
      "END COMPLETED",
    ]);
  });

  it("refuses a passed deadline, an unknown harness and inputs without a role, and writes nothing", async () => {
    await using host = newHost({ harness: oneCall });
    const session = await host.createSession();
    await expect(host.begin(session, ["x"], { deadlineMs: 1 })).rejects.toMatchObject({ code: "deadline_exceeded" });
    await expect(host.begin(session, ["x"], { harness: "nobody" })).rejects.toMatchObject({ code: "invalid_argument", field: "harness" });
    const inputs = [textMessage("user", "x"), { ...textMessage("user", "y"), role: "" }];
    await expect(host.begin(session, [], { inputs })).rejects.toMatchObject({ field: "inputs[1].role" });
    expect(await host.story(session)).toEqual([]);
  });

  it("refuses more inputs, config or running turns than its limits, and takes as many as they say", async () => {
    const limits = { inputsMax: 2, configBytesMax: 4, turnsRunningMax: 1 };
    await using host = newHost({ harness: oneCall, limits, models: new TestModel(silent) });
    const session = await host.createSession();
    const other = await host.createSession();
    const overLimit = { code: "resource_exhausted" };
    await expect(host.begin(session, ["1", "2", "3"])).rejects.toMatchObject(overLimit);
    await expect(host.begin(session, ["1"], { config: new Uint8Array(5) })).rejects.toMatchObject(overLimit);
    await host.begin(session, ["1", "2"], { config: new Uint8Array(4) });
    await expect(host.begin(other, ["1"])).rejects.toMatchObject(overLimit);
  });

  it("uses execution ids that differ from turn to turn", async () => {
    await using host = newHost({ harness: oneCall });
    const session = await host.createSession();
    const first = await host.begin(session, []);
    await first.outcome;
    const second = await host.begin(session, []);
    expect(executionIdOf(second.executionId)).not.toBe(first.executionId);
  });
});
