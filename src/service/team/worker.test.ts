import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import type { SessionUid } from "../../base/index.ts";
import { approvalRefOf, ownApprovals, type RunningTurn, type TurnOutcome } from "../../controller/index.ts";
import { Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import { HarnessFailure, messageText } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import {
  answering,
  gatedCall,
  resultWords,
  silent,
  SPAWN_AGENTS,
  spawnCall,
  SpawnWorld,
  storyUntil,
  TestModel,
  TestTools,
  type HarnessRun,
  type SpawningHost,
  type SpawnWorldOptions,
} from "../../testing/index.ts";
import { SPAWNED_BY_ANNOTATION } from "./annotations.ts";
import { SPAWN_TOOL } from "./spawn-call.ts";
import { watchTeam } from "./watch-team.ts";
import { driveWorker } from "./worker.ts";

const SUSPEND = `LIFECYCLE ${Lifecycle_Kind.LIFECYCLE_SUSPEND}`;
const CANCEL = `LIFECYCLE ${Lifecycle_Kind.LIFECYCLE_CANCEL}`;

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

/** A turn that runs, and whose worker runs its model call. */
async function working(world: SpawnWorld, host: SpawningHost, input = "thinker about it") {
  const session = await host.createSession();
  const turn = await host.begin(session, [input]);
  const worker = world.worker(session, "c1");
  await storyUntil(world, worker, (story) => story.includes("MODEL_CALL"));
  return { session, turn, worker };
}

describe("a worker without an answer", () => {
  const words = async (run: HarnessRun): Promise<{ said: string; output: unknown }> => {
    const world = newWorld({ harnesses: { worker: run } });
    await using host = world.host();
    const { session, outcome } = await ran(host, "worker go");
    expect(outcome).toBe("COMPLETED");
    const result = (await host.records(session)).map(({ event }) => event?.body).find((body) => body?.case === "result");
    const output = result?.case === "result" ? result.value.output : undefined;
    return { said: (await host.story(session)).at(-2) ?? "", output: output?.["state"] };
  };

  it("failed for good", async () => {
    const run: HarnessRun = async () => {
      throw new HarnessFailure(3, "the task makes no sense");
    };
    expect(await words(run)).toEqual({ said: "OUTPUT failed: the sub-agent has no answer: the task makes no sense", output: "FAILED" });
  });

  it("threw", async () => {
    const run: HarnessRun = async () => {
      throw new Error("oops");
    };
    const why = "harness: it threw; the turn is interrupted and can be resumed";
    expect(await words(run)).toEqual({ said: `OUTPUT failed: the sub-agent has no answer: ${why}`, output: "FAILED" });
  });

  it("was cancelled, or deleted", async () => {
    for (const how of ["cancel", "delete"] as const) {
      const world = newWorld();
      await using host = world.host();
      const { session, turn, worker } = await working(world, host);
      if (how === "cancel") await host.controller.cancel({ session: worker, executionId: "", reason: "USER" });
      else await host.controller.delete(worker, undefined);
      expect(await turn.outcome).toMatchObject({ state: "COMPLETED" });
      expect((await host.story(session)).at(-2)).toBe("OUTPUT failed: the sub-agent has no answer: its turn was cancelled (USER)");
    }
  });

  it("took too long, whatever it waited for", async () => {
    for (const input of ["thinker go", "asker go"]) {
      const world = newWorld({ limits: { timeoutMs: 60_000 } });
      await using host = world.host();
      const session = await host.createSession();
      const turn = await host.begin(session, [input]);
      const worker = world.worker(session, "c1");
      await storyUntil(world, worker, (story) => story.includes("MODEL_CALL") || story.some((line) => line.startsWith(SUSPEND)));
      world.ports.clock.advance(60_000);
      await turn.outcome;
      expect((await host.story(session)).at(-2)).toBe("OUTPUT failed: the sub-agent has no answer: its turn was cancelled (TIMEOUT)");
      expect((await host.story(worker)).slice(-2)).toEqual([`${CANCEL} TIMEOUT`, "END CANCELED"]);
    }
  });

  it("was used for something else by somebody before its turn began", async () => {
    const world = newWorld();
    const session = await world.host().createSession();
    const uid = world.worker(session, "c1");
    // What a host leaves that dies between the session and its turn.
    await using other = world.host({ hostId: "other" });
    await other.createSession({ uid, harness: "echo", annotations: { [SPAWNED_BY_ANNOTATION]: session } });
    await (
      await other.begin(uid, ["mine"])
    ).outcome;
    await (
      await other.begin(session, ["echo yours"])
    ).outcome;
    expect((await other.story(session)).at(-2)).toContain("its session was used for something else");
  });
});

describe("a worker on a host that runs as many turns as it may", () => {
  const full = { turnsRunningMax: 1 };
  /** Spawns an agent with each of its words at the same time, and says what came of them. */
  const many: HarnessRun = async ({ inputs }, sink) => {
    const [agent = "", ...prompts] = messageText(inputs[0]!).split(" ");
    const results = await Promise.all(prompts.map((prompt, at) => sink.toolCall(spawnCall(`c${at + 1}`, { agent, prompt }))));
    await sink.output(results.map(resultWords).join(", "));
  };
  /** Lets time pass until the turn has settled. */
  const settled = async (world: SpawnWorld, { outcome }: RunningTurn): Promise<TurnOutcome> => {
    let isSettled = false;
    void outcome.then(() => (isSettled = true));
    while (!isSettled) {
      world.ports.clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return outcome;
  };

  it("takes the place of its spawner, which waits for it, and so on as deep as may be", async () => {
    const world = newWorld();
    await using host = world.host({ limits: full });
    const { session, outcome } = await ran(host, "boss boss echo hello");
    expect(outcome).toBe("COMPLETED");
    expect((await host.story(session)).at(-2)).toBe("OUTPUT you said hello");
    // Each place was given back.
    expect((await ran(host, "echo again")).outcome).toBe("COMPLETED");
    expect(host.controller.hasRoom()).toBe(true);
  });

  it("waits where that place is taken, and has its turn then", async () => {
    const world = newWorld({ harnesses: { test: many } });
    await using host = world.host({ limits: full });
    const session = await host.createSession();
    const turn = await host.begin(session, ["echo a b c"]);
    expect(await settled(world, turn)).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT you said a, you said b, you said c");
    const workers = await world.workers(session);
    const spans = await Promise.all(
      workers.map(async ({ seed }) => (await host.records(seed.uid)).map(({ event }) => timestampMs(event!.ts!))),
    );
    const inOrder = spans.toSorted((one, other) => one[0]! - other[0]!);
    expect(inOrder.every((span, at) => at === 0 || span[0]! >= inOrder[at - 1]!.at(-1)!)).toBe(true);
  });

  it("is let in for its spawner alone: nobody else has that place", async () => {
    const world = newWorld();
    await using host = world.host({ limits: full });
    const { session, turn, worker } = await working(world, host);
    const other = await host.createSession();
    await expect(host.begin(other, ["echo hello"])).rejects.toMatchObject({ code: "resource_exhausted" });
    expect([host.controller.hasRoom(), host.controller.hasRoom({ lentBy: session }), host.controller.hasRoom({ lentBy: other })]).toEqual([
      false,
      false,
      false,
    ]);
    // Its spawner's turn ends first: the place is the worker's own, and free once that has ended as well.
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    await turn.outcome;
    await storyUntil(world, worker, (story) => story.at(-1) === "END CANCELED");
    expect((await ran(host, "echo hello")).outcome).toBe("COMPLETED");
  });

  it("goes on after a decision, also where others have come meanwhile", async () => {
    const world = newWorld();
    await using host = world.host({ limits: { turnsRunningMax: 2 } });
    const turns = await Promise.all(["asker one", "asker two"].map(async (input) => host.begin(await host.createSession(), [input])));
    const workers = turns.map(({ session }) => world.worker(session, "c1"));
    for (const worker of workers) await storyUntil(world, worker, (story) => story.at(-1)?.startsWith(SUSPEND) === true);
    expect(host.controller.hasRoom()).toBe(false);
    for (const worker of workers) {
      for (const approval of ownApprovals((await world.journal.get(worker))!)) {
        const ref = approvalRefOf((await world.journal.get(worker))!, approval);
        await host.controller.approve({ session: worker, ref, approved: true, reason: "", actor: undefined });
      }
    }
    for (const turn of turns) expect(await settled(world, turn)).toMatchObject({ state: "COMPLETED" });
  });

  it("is nothing where its spawner is cancelled while it waits for room", async () => {
    const world = newWorld({ harnesses: { test: many } });
    await using host = world.host({ limits: full });
    const session = await host.createSession();
    const turn = await host.begin(session, ["thinker a b"]);
    await expect.poll(async () => (await world.workers(session)).length).toBe(2);
    await expect.poll(async () => (await world.workers(session)).filter(({ projection }) => projection.lastSeq > 0).length).toBe(1);
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    await turn.outcome;
    const states = async () => (await world.workers(session)).map(({ projection: { lastEnd, deletionState } }) => lastEnd ?? deletionState);
    await expect.poll(states).toEqual(expect.arrayContaining(["CANCELED", DeletionState.DELETION_PENDING]));
    // Nobody who watches the team waits for it.
    const sources = { journal: world.journal, controller: host.controller, digest: world.ports.digest };
    const told = await Array.fromAsync(watchTeam(sources, (await world.journal.get(session))!, new AbortController().signal));
    expect(told.map(({ event }) => event.case)).toEqual(["workerStarted", "workerPhase", "workerFailed", "workerExited"]);
  });

  it("has no answer, and no session, where its time is up before there is room", async () => {
    const world = newWorld();
    await using host = world.host({ limits: full });
    const busy = await host.begin(await host.createSession(), ["thinker about it"]);
    const worker = await host.createSession({ harness: "echo" });
    const context = { journal: world.journal, controller: host.controller, clock: world.ports.clock };
    const { signal } = new AbortController();
    const answer = driveWorker(context, { worker, spawner: worker, prompt: "hello", timeoutMs: 60_000, signal });
    world.ports.clock.advance(59_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect((await world.journal.get(worker))?.projection.deletionState).toBe(DeletionState.DELETION_ACTIVE);
    world.ports.clock.advance(1);
    expect(await answer).toMatchObject({ state: "CANCELED", why: expect.stringContaining("before the host had room for its turn") });
    expect((await world.journal.get(worker))?.projection.deletionState).toBe(DeletionState.DELETION_PENDING);
    await host.controller.cancel({ session: busy.session, executionId: "", reason: "USER" });
  });
});

describe("a worker that waits for a person", () => {
  const decide = async (world: SpawnWorld, host: SpawningHost, worker: SessionUid, approved = true): Promise<void> => {
    const row = await world.journal.get(worker);
    const open = row === undefined ? undefined : ownApprovals(row).find(({ decision }) => decision === undefined);
    const ref = approvalRefOf(row!, open!);
    await host.controller.approve({ session: worker, ref, approved, reason: "", actor: undefined });
  };
  const parked = async (world: SpawnWorld, host: SpawningHost) => {
    const session = await host.createSession();
    const turn = await host.begin(session, ["asker go"]);
    const worker = world.worker(session, "c1");
    await storyUntil(world, worker, (story) => story.at(-1)?.startsWith(SUSPEND) === true);
    return { session, turn, worker };
  };

  it("goes on by itself once everything is decided, and its spawner has its answer", async () => {
    const world = newWorld();
    await using host = world.host();
    const { session, turn, worker } = await parked(world, host);
    await decide(world, host, worker);
    expect((await host.story(worker)).at(-1)).toBe("APPROVAL_RESULT s1 true");
    await decide(world, host, worker, false);
    expect(await turn.outcome).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT sent");
    const results = (await host.story(worker)).filter((line) => line.startsWith("TOOL_RESULT"));
    expect(results.toSorted()).toEqual(["TOOL_RESULT s1", "TOOL_RESULT s2 1"]);
  });

  it("keeps no shutdown waiting, and goes on when its spawner does", async () => {
    const world = newWorld();
    const host = world.host();
    const { session, turn, worker } = await parked(world, host);
    await host.controller.shutdown({ graceMs: 3_600_000 });
    expect(await turn.outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable" } });
    await host[Symbol.asyncDispose]();
    await using next = world.host({ hostId: "next" });
    await decide(world, next, worker);
    await decide(world, next, worker);
    const { turn: resumed } = await next.controller.resume(session, undefined);
    expect(await resumed!.outcome).toMatchObject({ state: "COMPLETED" });
    expect((await next.story(worker)).filter((line) => line.startsWith("EXECUTION_START"))).toEqual(["EXECUTION_START"]);
  });

  it("waits for the approval of its own spawn first, where that needs one", async () => {
    const world = newWorld({
      harnesses: {
        test: async (_, sink) => {
          const call = gatedCall(SPAWN_TOOL, "c1", { args: { agent: "echo", prompt: "go" } });
          await sink.output(resultWords(await sink.toolCall(call)));
        },
      },
    });
    await using host = world.host();
    const { session, outcome } = await ran(host, "");
    expect([outcome, await world.workers(session)]).toEqual(["parked", []]);
    await decide(world, host, session);
    const { turn } = await host.controller.resume(session, undefined);
    expect(await turn!.outcome).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT you said go");
  });

  it("may be resumed by that person: its spawner does not mind", async () => {
    const world = newWorld();
    await using host = world.host();
    const { turn, worker } = await parked(world, host);
    await decide(world, host, worker);
    await host.controller.resume(worker, undefined);
    await storyUntil(world, worker, (story) => story.filter((line) => line.startsWith(SUSPEND)).length === 2);
    await decide(world, host, worker);
    expect(await turn.outcome).toMatchObject({ state: "COMPLETED" });
  });
});

describe("a host that goes away", () => {
  it("cancels nothing: spawner and worker go on when the spawner is resumed", async () => {
    const world = newWorld();
    const host = world.host();
    const { session, worker } = await working(world, host);
    await host[Symbol.asyncDispose]();
    for (const uid of [session, worker]) expect((await world.host().story(uid)).join(" ")).not.toContain("CANCEL");
    await using next = world.host({ hostId: "next", models: new TestModel(answering("done")) });
    const { turn } = await next.controller.resume(session, undefined);
    expect(await turn!.outcome).toMatchObject({ state: "COMPLETED" });
    expect((await next.story(session)).at(-2)).toBe("OUTPUT done");
    expect(await next.story(worker)).toEqual(["EXECUTION_START", "INPUT about it", "MODEL_CALL", "OUTPUT done", "END COMPLETED"]);
    expect((await world.workers(session)).length).toBe(1);
  });

  it("lets both be resumed at once, as a start with recovery does", async () => {
    const world = newWorld();
    const host = world.host();
    const { session, worker } = await working(world, host);
    await host[Symbol.asyncDispose]();
    await using next = world.host({ hostId: "next", models: new TestModel(answering("done")) });
    const [spawner, own] = await Promise.all([next.controller.resume(session, undefined), next.controller.resume(worker, undefined)]);
    await own.turn?.outcome;
    // Whoever came second looks again within a second.
    for (let ticks = 0; ticks < 20; ticks++) {
      world.ports.clock.advance(100);
      await new Promise(setImmediate);
    }
    expect(await spawner.turn!.outcome).toMatchObject({ state: "COMPLETED" });
    expect((await next.story(worker)).filter((line) => line.startsWith("EXECUTION_START"))).toEqual(["EXECUTION_START"]);
  });

  it("may begin the worker's turn just when another looks whether it has begun", async () => {
    const gate = Promise.withResolvers<void>();
    const world = newWorld({
      harnesses: {
        slow: async (_, sink) => {
          await gate.promise;
          await sink.output("done");
        },
      },
    });
    await using other = world.host({ hostId: "other" });
    const session = await other.createSession();
    const uid = world.worker(session, "c1");
    await other.createSession({ uid, harness: "slow", annotations: { [SPAWNED_BY_ANNOTATION]: session } });
    const { journal } = world;
    const read = journal.read.bind(journal);
    const looked = Promise.withResolvers<void>();
    let hasBegun = false;
    // The worker's row has been read; its records are about to be.
    journal.read = async function* (request) {
      const begins = request.session === uid && !hasBegun;
      hasBegun ||= begins;
      if (begins) await other.begin(uid, ["go"]);
      try {
        yield* read(request);
      } finally {
        if (begins) looked.resolve();
      }
    };
    await using host = world.host();
    const turn = await host.begin(session, ["slow go"]);
    await looked.promise;
    for (let ticks = 0; ticks < 10; ticks++) await new Promise(setImmediate);
    gate.resolve();
    expect(await turn.outcome).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT done");
  });

  it("leaves the spawner waiting for a harness that the next one lacks, not with a failure", async () => {
    const world = newWorld();
    const host = world.host();
    const { session } = await working(world, host);
    await host[Symbol.asyncDispose]();
    const { thinker: _, ...harnesses } = world.harnesses;
    await using poorer = world.host({ hostId: "poorer", harnesses });
    const { turn } = await poorer.controller.resume(session, undefined);
    const outcome = await turn!.outcome;
    expect(outcome).toMatchObject({ kind: "interrupted", error: { code: "failed_precondition" } });
    expect(outcome.kind === "interrupted" && outcome.error.message).toContain("the turn's recorded harness is not served by this host");
    await using richer = world.host({ hostId: "richer", models: new TestModel(answering("done")) });
    const again = await richer.controller.resume(session, undefined);
    expect(await again.turn!.outcome).toMatchObject({ state: "COMPLETED" });
  });
});
