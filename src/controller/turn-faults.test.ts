import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { HoldfastError, SILENT_LOG } from "../base/index.ts";
import { MessageSchema, PartSchema, ToolResultSchema, UsageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { ComputeState } from "../gen/agentsessions/v1/session_pb.ts";
import { RECORD_BYTES_MAX, type AppendRequest } from "../journal/index.ts";
import { Mediation, HarnessFailure, textMessage, type EventSink, type Harness, type ModelChunk } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { answering, DyingStore, seededPorts, silent, testHarness, TestHost, TestModel, type TestHostOptions } from "../testing/index.ts";

function newHost(options: Partial<TestHostOptions> & { readonly harness: Harness }): TestHost {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  return new TestHost({ journal, ports, harnesses: { test: options.harness }, ...options });
}

const oneCall = testHarness(async (start, sink) => {
  const response = await sink.model({ model: "test", messages: start.inputs });
  await sink.usage(response.usage);
});

describe("a turn that goes wrong", () => {
  it("leaves ERROR and no END when the harness throws, without the harness's words", async () => {
    await using host = newHost({
      harness: testHarness(async () => {
        throw new Error("secret in a message");
      }),
    });
    const session = await host.createSession();
    const outcome = await (await host.begin(session, ["hi"])).outcome;
    expect(outcome).toMatchObject({ kind: "interrupted", lastSeq: 3, error: { code: "internal" } });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "INPUT hi", "ERROR 13"]);
    expect(JSON.stringify((await host.records(session)).at(-1)?.event?.body.value)).not.toContain("secret");
  });

  it("ends FAILED when the harness says so", async () => {
    await using host = newHost({
      harness: testHarness(async () => {
        throw new HarnessFailure(9, "no such mailbox");
      }),
    });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "ended", state: "FAILED" });
    expect((await host.records(session)).at(-1)?.event?.body.value).toMatchObject({
      state: "FAILED",
      error: { code: 9, description: "no such mailbox" },
    });
  });

  it("records a model call that failed for good as one ERROR", async () => {
    const models = new TestModel(async function* () {
      yield { kind: "text", partIndex: 0, text: "half" } satisfies ModelChunk;
      throw new HoldfastError("unavailable", "model: the provider cannot be reached");
    });
    await using host = newHost({ harness: oneCall, models });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" } });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "MODEL_CALL", "ERROR 14"]);
  });

  it("goes on after a failed model call when the harness does", async () => {
    const models = new TestModel(async function* () {
      throw new HoldfastError("resource_exhausted", "model: over its rate limit");
    });
    const harness = testHarness(async (_, sink) => {
      await sink.model({ model: "test", messages: [] }).catch(() => undefined);
      await sink.output("sorry");
    });
    await using host = newHost({ harness, models });
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(await host.story(session)).toEqual(["EXECUTION_START", "MODEL_CALL", "ERROR 8", "OUTPUT sorry", "END COMPLETED"]);
  });

  it("takes a provider whose stream ends early as unavailable", async () => {
    const models = new TestModel(async function* () {
      yield { kind: "text", partIndex: 0, text: "half" } satisfies ModelChunk;
    });
    await using host = newHost({ harness: oneCall, models });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ error: { code: "unavailable" } });
  });

  it("takes an answer that no record can hold as a failed call", async () => {
    const models = new TestModel(async function* () {
      const part = create(PartSchema, { part: { case: "toolCall", value: { id: "c", tool: "t", args: { n: 2 ** 60 } } } });
      const response = { message: create(MessageSchema, { role: "assistant", parts: [part] }), usage: create(UsageSchema) };
      yield { kind: "completed", response, facts: {} } satisfies ModelChunk;
    });
    await using host = newHost({ harness: oneCall, models });
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(await host.story(session)).toEqual(["EXECUTION_START", "MODEL_CALL", "ERROR 3"]);
  });

  it("refuses what no record can hold and goes on; a completion that large is a failed call", async () => {
    const large = "x".repeat(RECORD_BYTES_MAX);
    const refused: unknown[] = [];
    const harness = testHarness(async (_, sink) => {
      await sink.output(large).catch((error: unknown) => refused.push(error));
      await sink.report(create(ToolResultSchema, { id: "t", error: large })).catch((error: unknown) => refused.push(error));
      await sink.model({ model: "test", messages: [] }).catch((error: unknown) => refused.push(error));
      await sink.output("small");
    });
    await using host = newHost({ harness, models: new TestModel(answering(large)) });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ state: "COMPLETED" });
    expect(refused.map((fault) => (fault as HoldfastError).code)).toEqual(Array.from({ length: 3 }, () => "resource_exhausted"));
    expect(await host.story(session)).toEqual(["EXECUTION_START", "MODEL_CALL", "ERROR 8", "OUTPUT small", "END COMPLETED"]);
  });

  it("records up to the limit of a record", async () => {
    const text = "x".repeat(RECORD_BYTES_MAX - 1_024);
    await using host = newHost({ harness: testHarness(async (_, sink) => sink.output(text)) });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ state: "COMPLETED" });
    const tooLarge = textMessage("user", "x".repeat(RECORD_BYTES_MAX - 1_024));
    await expect(host.begin(session, [], { inputs: [tooLarge] })).rejects.toMatchObject({ code: "resource_exhausted", field: "inputs[0]" });
  });

  it("survives a harness that throws what cannot be recorded: ill-formed, endless, of no known code", async () => {
    const thrown = [
      new HoldfastError("internal", "bad \ud800 text"),
      new HoldfastError("unavailable", "long ".repeat(2_000_000)),
      Object.assign(new HoldfastError("internal", "odd"), { code: "no-such-code" }),
      undefined,
      { toString: () => "odd" },
    ];
    const logged: string[] = [];
    const harness = testHarness(async () => Promise.reject(thrown.shift()));
    const log = { log: (_: string, __: string, fields?: object) => void logged.push(JSON.stringify(fields)) };
    await using host = newHost({ harness, log });
    const session = await host.createSession();
    for (let left = thrown.length; left > 0; left--) {
      expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "interrupted" });
    }
    expect((await host.story(session)).filter((line) => line.startsWith("ERROR"))).toHaveLength(5);
    expect(Math.max(...logged.map((line) => line.length))).toBeLessThan(1_000);
  });

  it("logs where a harness threw, and nothing of its words, whatever they look like", async () => {
    const logged: string[] = [];
    const harness = testHarness(async () => {
      throw new Error("line\n    at 4111 1111 1111 1111 of Mr X");
    });
    const log = { log: (_: string, __: string, fields?: object) => void logged.push(JSON.stringify(fields)) };
    await using host = newHost({ harness, log });
    await (
      await host.begin(await host.createSession(), [])
    ).outcome;
    expect(logged.join()).not.toContain("4111");
    expect(logged.join()).toContain("turn-faults.test.ts");
  });

  it("refuses mediated tools without an executor, before anything is recorded", async () => {
    const harness = testHarness(async (_, sink) => {
      await sink.toolCall({ id: "c1", idempotencyKey: "k", tool: "t", mediation: Mediation.CONTROLLER_MEDIATED } as never);
    });
    await using host = newHost({ harness });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ error: { code: "failed_precondition" } });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "ERROR 9"]);
  });

  it("is resumed, or suspended, at once by the host whose own write failed: the lease that is left is nobody's", async () => {
    const ports = seededPorts();
    const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    let isFull = false;
    const flaky = {
      ...new DyingStore(journal, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view(),
      append: async (request: AppendRequest) => {
        // The output is refused, and so is giving the lease back.
        if (request.writer.kind !== "claim" && isFull) throw new HoldfastError("resource_exhausted", "journal: the disk is full");
        return journal.append(request);
      },
    };
    await using host = newHost({ harness: testHarness(async (_, sink) => sink.output("x")), ports, journal: flaky });
    const interrupted = async () => {
      const session = await host.createSession();
      isFull = true;
      expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "interrupted" });
      expect((await journal.get(session))?.holder).toBeDefined();
      isFull = false;
      return session;
    };
    const { turn } = await host.controller.resume(await interrupted(), undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    const row = await host.controller.suspend(await interrupted(), undefined);
    expect(row.projection.computeState).toBe(ComputeState.COMPUTE_COLD);
  });

  it("gives up on a turn that outgrows its record limit, whatever the harness catches", async () => {
    const harness = testHarness(async (_, sink) => {
      for (let index = 0; index < 50; index++) await sink.output(`${index}`).catch(() => undefined);
    });
    await using host = newHost({ harness, limits: { turnRecordsMax: 10 } });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toEqual({ kind: "ended", state: "FAILED", lastSeq: 10 });
    expect(await host.story(session)).toHaveLength(10);
  });

  it("survives a harness that does not wait for its effects, and one that acts after its end", async () => {
    let kept: EventSink | undefined;
    const harness = testHarness(async (_, sink) => {
      kept = sink;
      void sink.model({ model: "test", messages: [] });
      void sink.output("late");
    });
    await using host = newHost({ harness, models: new TestModel(silent) });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    await expect(kept?.output("after")).rejects.toMatchObject({ code: "failed_precondition" });
    expect((await host.story(session)).at(-1)).toBe("END COMPLETED");
  });
});
