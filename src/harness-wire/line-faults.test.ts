import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { EventKind, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { systemClock } from "../node/index.ts";
import { textResponse } from "../testing/host.ts";
import { seededPorts } from "../testing/ports.ts";
import { faultyLine, type FaultyRun } from "../testing/harness-wire/fault-peers.ts";
import { memoryLine } from "../testing/harness-wire/memory-line.ts";
import { outcomeOf, PARK, ProbeSink, probeStart } from "../testing/harness-wire/probe-host.ts";
import { ApprovalParkedError, ToolResultCode } from "../spi/index.ts";
import { createLineHarness, type LineHarness, type WireLimits } from "./index.ts";

const never = new AbortController().signal;

/** Runs against a peer that is played by hand; resolves with the run once it has begun. */
async function against(
  act: (run: FaultyRun) => void | Promise<void>,
  options: { readonly limits?: Partial<WireLimits>; readonly sink?: ProbeSink; readonly signal?: AbortSignal } = {},
) {
  const ports = seededPorts();
  const begun = Promise.withResolvers<FaultyRun>();
  const line = faultyLine(async (run) => {
    begun.resolve(run);
    await act(run);
  });
  const remote = createLineHarness({ line: line.host, clock: ports.clock, limits: options.limits });
  const sink = options.sink ?? new ProbeSink();
  const outcome = remote.run(probeStart(""), sink, { signal: options.signal ?? never }).then(() => "completed", outcomeOf);
  return { remote, sink, outcome, run: await begun.promise, clock: ports.clock, peer: line.peer };
}

/** Lets everything happen that waits for nothing but its turn. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a peer that says nothing", () => {
  const silent = (): { remote: LineHarness; clock: ReturnType<typeof seededPorts>["clock"] } => {
    const { clock } = seededPorts();
    return { remote: createLineHarness({ line: memoryLine().host, clock }), clock };
  };

  it("is given up where it does not answer the hello", async () => {
    const { remote, clock } = silent();
    const run = remote.run(probeStart(""), new ProbeSink(), { signal: never }).catch(outcomeOf);
    clock.advance(10_000);
    expect(await run).toBe("threw unavailable harness: it did not answer the host's hello within 10000 ms");
    await expect(remote.describe()).rejects.toMatchObject({ code: "unavailable" });
    expect((await remote.closed).message).toContain("hello");
  });

  it("is given up where it does not describe itself; its line goes on", async () => {
    const { host, peer } = memoryLine();
    const ended: string[] = [];
    peer.onFrame = ({ frame }) => {
      if (frame.case === "hello") void peer.send({ exchange: 0, frame: { case: "hello", value: { protocol: 1 } } });
      if (frame.case === "end") ended.push(frame.value.description);
    };
    const { clock } = seededPorts();
    const remote = createLineHarness({ line: host, clock });
    const described = remote.describe();
    described.catch(() => undefined);
    await settled();
    clock.advance(10_000);
    await expect(described).rejects.toMatchObject({ code: "unavailable", message: "harness: it did not answer describe within 10000 ms" });
    await settled();
    expect(ended).toEqual(["describe is not waited for any longer"]);
    expect(remote.openExchanges).toBe(0);
  });

  it("may compute as long as it likes", async () => {
    const { outcome, clock, run } = await against(() => undefined);
    clock.advance(86_400_000);
    run.end();
    run.exchangeEnd();
    expect(await outcome).toBe("completed");
  });
});

describe("a peer of another protocol", () => {
  it.each([
    ["another version", { exchange: 0, frame: { case: "hello", value: { protocol: 2 } } }, /must speak protocol 1/],
    ["no hello first", { exchange: 0, frame: { case: "end", value: {} } }, /the first frame must be the hello/],
    ["a hello within an exchange", { exchange: 1, frame: { case: "hello", value: { protocol: 1 } } }, /the first frame must be the hello/],
  ] as const)("is refused: %s", async (_name, frame, words) => {
    const { host, peer } = memoryLine();
    const remote = createLineHarness({ line: host, clock: seededPorts().clock });
    await peer.send(frame);
    const refused = { name: "HoldfastError", code: "failed_precondition", message: expect.stringMatching(words) as string };
    await expect(remote.ready()).rejects.toMatchObject(refused);
    await expect(remote.describe()).rejects.toMatchObject(refused);
    await peer.closed;
  });
});

describe("an END FAILED", () => {
  it.each([
    [9, 9],
    [16, 16],
    [0, 2],
    [-5, 2],
    [17, 2],
    [2_000_000_000, 2],
  ])("with the code %i has failed with %i, and with the harness's own words", async (code, told) => {
    const { outcome, run } = await against(() => undefined);
    const error = { code, description: "no model" };
    run.event({ kind: EventKind.EVENT_END, body: { case: "end", value: { state: "FAILED", error } } });
    run.exchangeEnd();
    expect(await outcome).toBe(`failed ${told} no model`);
  });

  it("without an error has failed with UNKNOWN", async () => {
    const { outcome, run } = await against(() => undefined);
    run.end("FAILED");
    run.exchangeEnd();
    expect(await outcome).toBe("failed 2 ");
  });
});

describe("a cancel", () => {
  it.each([
    [new HoldfastError("cancelled", "turn: it was cancelled (USER)"), "USER"],
    [new HoldfastError("cancelled", "turn: it was cancelled (TIMEOUT)"), "TIMEOUT"],
    [new HoldfastError("unavailable", "host: it is shutting down"), "INTERNAL"],
    ["no error at all", "INTERNAL"],
  ])("goes out with its reason: %s", async (reason, word) => {
    const turn = new AbortController();
    const { run, remote } = await against(() => undefined, { signal: turn.signal });
    turn.abort(reason);
    await run.until("controller");
    expect(run.received.at(-1)).toMatchObject({
      value: { executionId: "turn-1", session: "session-1", frame: { case: "cancel", value: { reason: word } } },
    });
    await remote[Symbol.asyncDispose]();
  });

  it("is waited for, and then not any longer", async () => {
    const turn = new AbortController();
    const { outcome, clock, run, remote } = await against(() => undefined, { signal: turn.signal });
    turn.abort(new HoldfastError("cancelled", "turn: it was cancelled (USER)"));
    let isOver = false;
    void outcome.then(() => (isOver = true));
    clock.advance(4_999);
    await settled();
    expect([isOver, remote.openExchanges]).toEqual([false, 1]);
    clock.advance(1);
    expect(await outcome).toBe("threw cancelled turn: it was cancelled (USER)");
    await run.until("end");
    expect(remote.openExchanges).toBe(0);
  });

  it("shuts the sink to what comes after it, whatever that is", async () => {
    const turn = new AbortController();
    const { outcome, run, sink } = await against(() => undefined, { signal: turn.signal });
    turn.abort(new HoldfastError("cancelled", "turn: it was cancelled (USER)"));
    run.output("late");
    run.model();
    run.end("CANCELED");
    run.exchangeEnd();
    expect(await outcome).toBe("threw cancelled turn: it was cancelled (USER)");
    expect(sink.asked).toEqual([]);
  });

  it("takes an answer that breaks a rule for an answer", async () => {
    const turn = new AbortController();
    const { outcome, run } = await against(() => undefined, { signal: turn.signal });
    turn.abort(new HoldfastError("cancelled", "turn: it was cancelled (USER)"));
    run.event({ executionId: "other", kind: EventKind.EVENT_END, body: { case: "end", value: { state: "COMPLETED" } } });
    expect(await outcome).toBe("threw cancelled turn: it was cancelled (USER)");
  });
});

describe("a park", () => {
  const parking = (): ProbeSink => {
    const sink = new ProbeSink();
    sink.toolCall = () => Promise.reject(new ApprovalParkedError(PARK));
    return sink;
  };
  const ask = (run: FaultyRun): void =>
    run.event({
      kind: EventKind.EVENT_TOOL_CALL,
      body: { case: "tool", value: { id: "park", tool: "pay", idempotencyKey: "k", mediation: 3 } },
    });

  it("is answered with the same reference", async () => {
    const { outcome } = await against(
      async (run) => {
        ask(run);
        await run.until("controller");
        run.event({ kind: EventKind.EVENT_PARKED, body: { case: "parked", value: PARK } });
        run.exchangeEnd();
      },
      { sink: parking() },
    );
    expect(await outcome).toBe("parked");
  });

  it("answered with another reference breaks a rule", async () => {
    const { outcome } = await against(
      async (run) => {
        ask(run);
        await run.until("controller");
        run.event({ kind: EventKind.EVENT_PARKED, body: { case: "parked", value: { ...PARK, requestSeq: 13n } } });
      },
      { sink: parking() },
    );
    expect(await outcome).toBe("failed 13 harness wire: PARKED must answer a park with the same reference");
  });

  it("that is passed over interrupts the turn", async () => {
    const { outcome } = await against(
      async (run) => {
        ask(run);
        await run.until("controller");
        run.end();
        run.exchangeEnd();
      },
      { sink: parking() },
    );
    expect(await outcome).toMatch(/^threw failed_precondition .*must let the park pass/);
  });

  it("that is not answered parks the turn all the same", async () => {
    const { outcome, clock, run } = await against(ask, { sink: parking() });
    await run.until("controller");
    clock.advance(30_000);
    expect(await outcome).toBe("parked");
  });
});

describe("a receipt of a call that was decided", () => {
  it.each([
    [ToolResultCode.CODE_UNSPECIFIED, true, ""],
    [ToolResultCode.APPROVAL_DENIED, false, "the call was denied: no"],
  ])("comes after its decision: code %d", async (code, approved, reason) => {
    const sink = new ProbeSink();
    sink.toolCall = async ({ id }) =>
      create(ToolResultSchema, { id, code, isError: code !== 0, error: reason, approvalRequestSeq: 7n, approvalDecisionSeq: 9n });
    const { run } = await against(
      (peer) => peer.event({ kind: EventKind.EVENT_TOOL_CALL, body: { case: "tool", value: { id: "c", tool: "pay", mediation: 3 } } }),
      { sink },
    );
    await settled();
    const frames = run.received.map((frame) => (frame.case === "controller" ? frame.value.frame : frame));
    expect(frames).toMatchObject([
      { case: "approval", value: { toolCallId: "c", approved, reason, requestSeq: 7n } },
      { case: "tool", value: { id: "c", approvalDecisionSeq: 9n } },
    ]);
    run.peer.close();
  });
});

describe("a flood", () => {
  it("of outputs stops being read, until some are done", async () => {
    const sink = new ProbeSink();
    const taken: (() => void)[] = [];
    let outputs = 0;
    sink.output = () => ((outputs += 1), new Promise((resolve) => taken.push(resolve)));
    const { run, peer, outcome } = await against(() => undefined, { sink, limits: { effectsInFlightMax: 8 } });
    for (let index = 0; index < 100; index++) run.output("x");
    run.end();
    run.exchangeEnd();
    await settled();
    expect([outputs, peer.unread]).toEqual([1, 94]);
    taken.shift()?.();
    await settled();
    // One that is done lets one in.
    expect([outputs, peer.unread]).toEqual([2, 93]);
    for (let resolve = taken.shift(); resolve !== undefined; resolve = taken.shift()) {
      resolve();
      await settled();
    }
    expect([await outcome, outputs]).toEqual(["completed", 100]);
  });

  it("of calls stops being read, and the calls are all made", async () => {
    const sink = new ProbeSink();
    const made: (() => void)[] = [];
    sink.model = () => new Promise((resolve) => made.push(() => resolve(textResponse("x"))));
    const { run, peer } = await against(() => undefined, { sink, limits: { effectsInFlightMax: 8 } });
    for (let index = 0; index < 20; index++) run.model(`m${index}`);
    await settled();
    expect([made.length, peer.unread]).toEqual([8, 12]);
    peer.close();
  });

  it("of tokens is refused, and then breaks a rule", async () => {
    const { clock } = seededPorts();
    const line = faultyLine((run) => {
      for (let request = 1; request <= 100; request++) run.frame({ case: "mintToken", value: { request, audience: ["x"] } });
    });
    const remote = createLineHarness({ line: line.host, clock });
    let minting = 0;
    const identity = { mintToken: () => ((minting += 1), new Promise<string>(() => undefined)) };
    const outcome = remote.run(probeStart("", { identity }), new ProbeSink(), { signal: never }).catch(outcomeOf);
    // What is refused at once leaves no trace; what waits is bounded.
    await settled();
    expect(minting).toBe(16);
    line.peer.close();
    expect(await outcome).toMatch(/closed/);
  });

  it("of reads is refused beyond the bound", async () => {
    const { run } = await against(
      (peer) => {
        for (let read = 1; read <= 20; read++) peer.frame({ case: "readHistory", value: { read, pages: 1 } });
      },
      { limits: { readsMax: 4, pageEventsMax: 1 } },
    );
    await settled();
    const refused = run.received.filter((frame) => frame.case === "history" && frame.value.error?.code === 8);
    expect(refused.length).toBe(16);
  });

  it("of pages never comes: no page is sent that was not asked for", async () => {
    const { run } = await against((peer) => peer.frame({ case: "readHistory", value: { read: 1, pages: 3 } }), {
      limits: { pageEventsMax: 1 },
    });
    await settled();
    expect(run.received.filter(({ case: kind }) => kind === "history").length).toBe(3);
    run.frame({ case: "readHistory", value: { read: 1, pages: 2, more: true } });
    await settled();
    expect(run.received.filter(({ case: kind }) => kind === "history").length).toBe(5);
    run.frame({ case: "readHistory", value: { read: 1, pages: 0, more: true } });
    run.frame({ case: "readHistory", value: { read: 1, pages: 9, more: true } });
    await settled();
    expect(run.received.filter(({ case: kind }) => kind === "history").length).toBe(5);
  });
});

describe("an effect that nobody waits for", () => {
  it("once refused, lets nothing after it happen, and the run cannot complete", async () => {
    const sink = new ProbeSink();
    const { outcome } = await against(
      (run) => {
        run.output("one");
        run.output("refuse me");
        run.output("two");
        run.model();
        run.end();
        run.exchangeEnd();
      },
      { sink },
    );
    expect(await outcome).toBe("threw resource_exhausted output: there is no room");
    expect(sink.asked).toEqual(["output one", "output refuse me"]);
  });
});

describe("an exchange that is over", () => {
  it("hears nothing more, and harms no other", async () => {
    const { outcome, run, remote } = await against((peer) => {
      peer.output("x");
      peer.end();
      peer.exchangeEnd();
    });
    expect(await outcome).toBe("completed");
    run.output("late");
    run.exchangeEnd(13);
    await settled();
    await expect(remote.describe()).resolves.toMatchObject({ id: "faulty" });
    await remote[Symbol.asyncDispose]();
  });
});

describe("a history that is too large to be pushed", () => {
  it("is refused in words that say what to do", async () => {
    const line = faultyLine(() => undefined, { pullsHistory: false });
    const remote = createLineHarness({ line: line.host, clock: systemClock, limits: { pushedHistoryBytesMax: 100 } });
    const outcome = await remote.run(probeStart(""), new ProbeSink(), { signal: never }).catch(outcomeOf);
    expect(outcome).toMatch(/^threw resource_exhausted .*it must pull its history instead$/);
    await remote[Symbol.asyncDispose]();
  });
});
