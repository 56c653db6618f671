import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { SILENT_LOG, type SessionUid } from "../base/index.ts";
import {
  EventSchema,
  EventKind,
  ExecutionStartSchema,
  ToolCallSchema,
  ToolResultSchema,
  UsageSchema,
} from "../gen/agentsessions/v1/common_pb.ts";
import { ComputeState, ExecState } from "../gen/agentsessions/v1/session_pb.ts";
import { execStateOf, type JournalStore } from "../journal/index.ts";
import { HarnessFailure, Mediation, textMessage, type Harness } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { answering, DyingStore, seededPorts, testHarness, TestHost, TestModel, type Death } from "../testing/index.ts";

/** Two model calls, output of its own, a reported tool and usage. */
const busy = testHarness(async (start, sink) => {
  const first = await sink.model({ model: "test", messages: start.inputs });
  await sink.usage(first.usage);
  await sink.output("between");
  await sink.report(create(ToolResultSchema, { id: "t1", output: { n: 1 } }));
  const second = await sink.model({ model: "test", messages: [...start.inputs, first.message] });
  await sink.usage(second.usage);
});

const BUSY_STORY = [
  "EXECUTION_START",
  "INPUT go",
  "MODEL_CALL",
  "OUTPUT hello",
  "USAGE",
  "OUTPUT between",
  "TOOL_RESULT t1",
  "MODEL_CALL",
  "OUTPUT hello",
  "USAGE",
  "END COMPLETED",
];

function setup(harness: Harness = busy) {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const model = new TestModel(answering("hello"));
  const newHost = (hostId: string, store: JournalStore = journal, served: Harness = harness) =>
    new TestHost({ journal: store, ports, harnesses: { test: served }, models: model, hostId });
  return { ports, journal, model, newHost };
}

/** Runs one turn on a host that dies; returns once the lease of the dead host has run out. */
async function crashedTurn(world: ReturnType<typeof setup>, death: Death): Promise<{ session: SessionUid; died: boolean }> {
  const dying = new DyingStore(world.journal, death);
  const host = world.newHost("first", dying.view());
  const session = await host.createSession();
  await host.begin(session, ["go"]).then(
    (turn) => turn.outcome,
    () => undefined,
  );
  world.ports.clock.advance(60_000);
  return { session, died: dying.dead };
}

describe("resuming an interrupted turn", () => {
  it("serves what is recorded and goes live after it, wherever the host died", async () => {
    let deaths = 0;
    for (const when of ["before", "after"] as const) {
      for (let atAppend = 1; ; atAppend++) {
        const world = setup();
        const { session, died } = await crashedTurn(world, { atAppend, when });
        if (!died) break;
        deaths += 1;
        const callsBefore = world.model.requests.length;
        await using host = world.newHost("second");
        const before = await host.story(session);
        const { turn } = await host.controller.resume(session, undefined);
        const outcome = await turn?.outcome;
        if (before.length === 0) {
          expect(turn).toBeUndefined();
          continue;
        }
        if (before.at(-1) === "END COMPLETED") expect(turn).toBeUndefined();
        else expect(outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
        expect(await host.story(session)).toEqual(BUSY_STORY);
        expect(callsBefore).toBeLessThanOrEqual(2);
        expect(world.model.requests.length).toBeLessThanOrEqual(3);
      }
    }
    expect(deaths).toBeGreaterThanOrEqual(8);
  });

  it("makes no second MODEL_CALL for a call whose completion was lost: it asks the model once more under the same one", async () => {
    const world = setup();
    const { session } = await crashedTurn(world, { atAppend: 3, when: "before" });
    await using host = world.newHost("second");
    expect(await host.story(session)).toEqual(["EXECUTION_START", "INPUT go", "MODEL_CALL"]);
    const { turn } = await host.controller.resume(session, undefined);
    await turn?.outcome;
    expect(await host.story(session)).toEqual(BUSY_STORY);
    expect(world.model.requests).toHaveLength(3);
  });

  it("keeps the turn's execution id and writes under a new fence", async () => {
    const world = setup();
    const { session } = await crashedTurn(world, { atAppend: 4, when: "before" });
    await using host = world.newHost("second");
    const { turn } = await host.controller.resume(session, undefined);
    await turn?.outcome;
    const records = await host.records(session);
    expect(new Set(records.map(({ event }) => event?.executionId)).size).toBe(1);
    expect(records[0]?.fence).toBe(1n);
    expect(records.at(-1)?.fence).toBe(2n);
  });

  it("changes nothing where there is nothing to do: ended, empty, or running", async () => {
    const world = setup();
    await using host = world.newHost("only");
    const [fresh, ended] = [await host.createSession(), await host.createSession()];
    await (
      await host.begin(ended, ["go"])
    ).outcome;
    for (const session of [fresh, ended]) {
      const before = await world.journal.get(session);
      expect((await host.controller.resume(session, undefined)).turn).toBeUndefined();
      expect((await world.journal.get(session))?.version).toBe(before?.version);
    }
  });

  it("stops at a divergence: nothing is performed, nothing is recorded, whatever the harness catches (I0)", async () => {
    const world = setup();
    const { session } = await crashedTurn(world, { atAppend: 4, when: "before" });
    const stubborn = testHarness(async (_, sink) => {
      for (let attempt = 0; attempt < 3; attempt++) {
        await sink.model({ model: "test", messages: [textMessage("user", "other")] }).catch(() => undefined);
        await sink.output("forged").catch(() => undefined);
      }
    });
    const calls = world.model.requests.length;
    await using host = world.newHost("second", world.journal, stubborn);
    const before = await host.story(session);
    const { turn } = await host.controller.resume(session, undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "interrupted", error: { code: "failed_precondition", details: { seq: 3 } } });
    expect(await host.story(session)).toEqual(before);
    expect(world.model.requests).toHaveLength(calls);
    expect((await world.journal.get(session))?.holder).toBeUndefined();
  });

  it("is refused when the recorded harness is not served, or its version is another", async () => {
    const world = setup();
    const { session } = await crashedTurn(world, { atAppend: 3, when: "after" });
    await using gone = new TestHost({ journal: world.journal, ports: world.ports, harnesses: {} });
    await expect(gone.controller.resume(session, undefined)).rejects.toMatchObject({ code: "failed_precondition" });
    await using newer = world.newHost("second", world.journal, testHarness(busy.run, { version: "2" }));
    await expect(newer.controller.resume(session, undefined)).rejects.toThrow(
      "(recorded 1, served 2); serve that version and resume, or cancel the turn or start a new one",
    );
    await using odd = world.newHost("third", world.journal, testHarness(busy.run, { version: "see /etc/hosts" }));
    await expect(odd.controller.resume(session, undefined)).rejects.toThrow("(recorded 1, served one of another form)");
  });

  it("replays a model call that failed for good as the same error, without asking again", async () => {
    const seen: unknown[] = [];
    const harness = testHarness(async (_, sink) => {
      await sink.model({ model: "none", messages: [] }).catch((error: unknown) => seen.push(error));
      await sink.output("sorry");
      await sink.output("really");
    });
    const ports = seededPorts();
    const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
    const models = { providerOf: () => undefined };
    const dying = new DyingStore(journal, { atAppend: 4, when: "after" });
    const first = new TestHost({ journal: dying.view(), ports, harnesses: { test: harness }, models });
    const session = await first.createSession();
    await (
      await first.begin(session, [])
    ).outcome;
    ports.clock.advance(60_000);
    await using second = new TestHost({ journal, ports, harnesses: { test: harness }, models, hostId: "second" });
    await (
      await second.controller.resume(session, undefined)
    ).turn?.outcome;
    expect(await second.story(session)).toEqual([
      "EXECUTION_START",
      "MODEL_CALL",
      "ERROR 9",
      "OUTPUT sorry",
      "OUTPUT really",
      "END COMPLETED",
    ]);
    expect(seen).toHaveLength(2);
    expect(seen[1]).toMatchObject({ code: "failed_precondition", message: (seen[0] as Error).message });
  });
});

describe("a start marker that does not add up", () => {
  const cases: [string, bigint | undefined][] = [
    ["no input count", undefined],
    ["a negative input count", -1n],
    ["another input count", 2n],
  ];
  it.each(cases)("is refused before the harness runs: %s", async (_, inputCount) => {
    const world = setup();
    await using host = world.newHost("a");
    const session = await host.createSession();
    const start = create(ExecutionStartSchema, { harness: "test", harnessVersion: "1" });
    if (inputCount !== undefined) start.inputCount = inputCount;
    await world.journal.append({
      session,
      writer: { kind: "claim", holder: "x" as never, leaseMs: 0 },
      events: [
        {
          event: create(EventSchema, {
            executionId: "e",
            kind: EventKind.EVENT_EXECUTION_START,
            body: { case: "executionStart", value: start },
          }),
        },
        {
          event: create(EventSchema, {
            executionId: "e",
            kind: EventKind.EVENT_INPUT,
            body: { case: "message", value: textMessage("user", "go") },
          }),
        },
      ],
    });
    await expect(host.controller.resume(session, undefined)).rejects.toMatchObject({ code: "failed_precondition" });
    expect(world.model.requests).toHaveLength(0);
  });
});

describe("a journal without markers and execution ids", () => {
  async function legacy(...kinds: ("input" | "call" | "output")[]) {
    const world = setup(
      testHarness(async (start, sink) => {
        expect(start.executionId).toMatch(/^legacy-[0-9a-f]{64}$/);
        await sink.model({ model: "test", messages: start.inputs });
        await sink.output("more");
      }),
    );
    const host = world.newHost("a");
    const session = await host.createSession();
    const recorded = world.newHost(
      "recorder",
      world.journal,
      testHarness(async (start, sink) => void (await sink.model({ model: "test", messages: start.inputs }))),
    );
    const template = await recorded.createSession();
    await (
      await recorded.begin(template, ["go"])
    ).outcome;
    const events = (await recorded.records(template)).map(({ event }) => ({ ...event!, executionId: "" }));
    const [, input, call, output] = events;
    const chosen = { input, call, output };
    await world.journal.append({
      session,
      writer: { kind: "claim", holder: "x" as never, leaseMs: 0 },
      events: kinds.map((kind) => ({ event: chosen[kind]! })),
    });
    return { host, session, model: world.model };
  }

  it("goes on from its last input, and what it adds has no execution id either", async () => {
    const { host, session } = await legacy("input", "call", "output");
    const { turn } = await host.controller.resume(session, undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(await host.story(session)).toEqual(["INPUT go", "MODEL_CALL", "OUTPUT hello", "OUTPUT more", "END COMPLETED"]);
    expect((await host.records(session)).every(({ event }) => event?.executionId === "")).toBe(true);
  });

  it("is refused where a completion is missing", async () => {
    const { host, session } = await legacy("input", "call");
    await expect(host.controller.resume(session, undefined)).rejects.toThrow(/without a completion at seq 2/);
  });
});

describe("suspending and resuming a session", () => {
  it("frees compute and brings it back; both may be repeated", async () => {
    const world = setup();
    await using host = world.newHost("a");
    const session = await host.createSession();
    await (
      await host.begin(session, ["go"])
    ).outcome;
    expect((await host.controller.suspend(session, undefined)).projection.computeState).toBe(ComputeState.COMPUTE_COLD);
    const cold = await host.controller.suspend(session, undefined);
    expect(cold.projection).toMatchObject({ lastSeq: 12, snapshot: { local: session, memory: false } });
    const { row } = await host.controller.resume(session, undefined);
    expect(row.projection.computeState).toBe(ComputeState.COMPUTE_LIVE);
    expect((await host.controller.resume(session, undefined)).row.projection.lastSeq).toBe(13);
    expect((await host.story(session)).slice(-2)).toEqual(["LIFECYCLE 1", "LIFECYCLE 2"]);
    expect(execStateOf(row.projection, false)).toBe(ExecState.EXEC_COMPLETED);
  });

  it("happens in one append with the start of the next turn", async () => {
    const world = setup(testHarness(async (_, sink) => sink.usage(create(UsageSchema))));
    await using host = world.newHost("a");
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    await host.controller.suspend(session, undefined);
    const commits: number[] = [];
    world.journal.watch(session, (records) => commits.push(records.length));
    await (
      await host.begin(session, [])
    ).outcome;
    expect((await host.story(session)).slice(3)).toEqual(["LIFECYCLE 1", "LIFECYCLE 2", "EXECUTION_START", "USAGE", "END COMPLETED"]);
    expect(commits[0]).toBe(2);
  });

  it("is refused while a turn runs", async () => {
    const world = setup(
      testHarness(async (_, __, { signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve()))),
    );
    await using host = world.newHost("a");
    const session = await host.createSession();
    await host.begin(session, []);
    await expect(host.controller.suspend(session, undefined)).rejects.toMatchObject({ code: "aborted" });
  });
});

describe("a turn that stops over and over", () => {
  it("does not take the ERROR of a harness for the answer of a model call that was never answered", async () => {
    let broken = true;
    const world = setup(
      testHarness(async (start, sink, options) => {
        if (broken) throw new Error("not yet");
        await busy.run(start, sink, options);
      }),
    );
    broken = false;
    const { session } = await crashedTurn(world, { atAppend: 3, when: "before" });
    broken = true;
    await using host = world.newHost("second");
    for (let attempt = 0; attempt < 2; attempt++) {
      const { turn } = await host.controller.resume(session, undefined);
      expect(await turn?.outcome).toMatchObject({ kind: "interrupted", error: { code: "internal" } });
    }
    expect(await host.story(session)).toEqual(["EXECUTION_START", "INPUT go", "MODEL_CALL"]);
    broken = false;
    await (
      await host.controller.resume(session, undefined)
    ).turn?.outcome;
    expect(await host.story(session)).toEqual(BUSY_STORY);
  });

  it("diverges where its harness gives up before it has asked for what is recorded: nothing is ended for good", async () => {
    const world = setup();
    const { session } = await crashedTurn(world, { atAppend: 4, when: "before" });
    const hasty = testHarness(async () => {
      throw new HarnessFailure(3, "no");
    });
    await using host = world.newHost("second", world.journal, hasty);
    const before = await host.story(session);
    const { turn } = await host.controller.resume(session, undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "interrupted", error: { code: "failed_precondition", details: { seq: 3 } } });
    expect(await host.story(session)).toEqual(before);
  });

  it("serves a recorded tool result, and leaves a turn alone whose tool this host does not serve", async () => {
    const call = create(ToolCallSchema, { id: "c", tool: "t", mediation: Mediation.CONTROLLER_MEDIATED, idempotencyKey: "k" });
    const seen: unknown[] = [];
    const world = setup(
      testHarness(async (_, sink) => {
        seen.push((await sink.toolCall(call)).output);
        await sink.output("after");
      }),
    );
    await using host = world.newHost("a");
    const events = [
      { kind: EventKind.EVENT_EXECUTION_START, body: { case: "executionStart", value: create(ExecutionStartSchema, { inputCount: 0n }) } },
      { kind: EventKind.EVENT_TOOL_CALL, body: { case: "tool", value: call } },
      { kind: EventKind.EVENT_TOOL_RESULT, body: { case: "result", value: create(ToolResultSchema, { id: "c", output: { n: 1 } }) } },
    ] as const;
    const resumed = async (count: number) => {
      const session = await host.createSession();
      await world.journal.append({
        session,
        writer: { kind: "claim", holder: "x" as never, leaseMs: 0 },
        events: events.slice(0, count).map((event) => ({ event: create(EventSchema, { executionId: "e", ...event }) })),
      });
      return { session, outcome: await (await host.controller.resume(session, undefined)).turn?.outcome };
    };
    expect((await resumed(3)).outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(seen).toEqual([{ n: 1 }]);
    await expect(resumed(2)).rejects.toMatchObject({ code: "failed_precondition", message: expect.stringContaining("seq 2") as string });
  });
});
