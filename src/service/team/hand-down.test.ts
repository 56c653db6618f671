import { describe, expect, it } from "vitest";
import { HoldfastError, type SessionUid } from "../../base/index.ts";
import { Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { JournalStore } from "../../journal/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import {
  DyingStore,
  silent,
  SPAWN_AGENTS,
  spawnCall,
  SpawnWorld,
  storyUntil,
  TestModel,
  TestTools,
  type SpawningHost,
  type HarnessRun,
  type SpawnWorldOptions,
} from "../../testing/index.ts";
import { SPAWNED_BY_ANNOTATION } from "./annotations.ts";

const SUSPEND = `LIFECYCLE ${Lifecycle_Kind.LIFECYCLE_SUSPEND}`;
const CANCEL = `LIFECYCLE ${Lifecycle_Kind.LIFECYCLE_CANCEL}`;

function newWorld(more: Partial<SpawnWorldOptions> = {}): SpawnWorld {
  const harnesses = { test: SPAWN_AGENTS.boss, ...SPAWN_AGENTS, ...more.harnesses };
  const tools = new TestTools({ send: async () => ({ output: { sent: true } }) });
  return new SpawnWorld({ openJournal: createMemoryStore, tools, models: new TestModel(silent), ...more, harnesses });
}

/** Spawns two workers at once. */
const both: HarnessRun = async (_, sink) => {
  await Promise.all(["c1", "c2"].map((id) => sink.toolCall(spawnCall(id, { agent: "thinker", prompt: "go" }))));
};

/** A turn that runs, and whose worker runs its model call. */
async function working(world: SpawnWorld, host: SpawningHost, input = "thinker about it") {
  const session = await host.createSession();
  const turn = await host.begin(session, [input]);
  const worker = world.worker(session, "c1");
  await storyUntil(world, worker, (story) => story.includes("MODEL_CALL"));
  return { session, turn, worker };
}

describe("cancellation", () => {
  const cancelled = [`${CANCEL} INTERNAL`, "END CANCELED"];

  it("is handed down, however deep", async () => {
    const world = newWorld();
    await using host = world.host();
    const { session, worker } = await working(world, host);
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect((await storyUntil(world, worker, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
    const deep = await host.createSession();
    await host.begin(deep, ["boss boss thinker hard"]);
    const below = world.worker(world.worker(world.worker(deep, "c1"), "c1"), "c1");
    await storyUntil(world, below, (story) => story.includes("MODEL_CALL"));
    await host.controller.cancel({ session: deep, executionId: "", reason: "USER" });
    expect((await storyUntil(world, below, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
  });

  it("is handed down at a deadline, and when the spawner is deleted", async () => {
    const world = newWorld();
    await using host = world.host();
    const first = await working(world, host);
    await host.controller.delete(first.session, undefined);
    expect((await storyUntil(world, first.worker, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
    expect((await world.journal.get(first.worker))!.projection.deletionState).toBe(DeletionState.DELETION_ACTIVE);
    const session = await host.createSession();
    await host.begin(session, ["thinker go"], { deadlineMs: world.ports.clock.nowMs() + 5_000 });
    const worker = world.worker(session, "c1");
    await storyUntil(world, worker, (story) => story.includes("MODEL_CALL"));
    world.ports.clock.advance(5_000);
    expect((await storyUntil(world, worker, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
  });

  it("reaches a worker that waits for a person", async () => {
    const world = newWorld();
    await using host = world.host();
    const session = await host.createSession();
    await host.begin(session, ["asker go"]);
    const worker = world.worker(session, "c1");
    await storyUntil(world, worker, (story) => story.at(-1)?.startsWith(SUSPEND) === true);
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect((await storyUntil(world, worker, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
  });

  it("reaches the worker of a turn that was given up for another one", async () => {
    const world = newWorld();
    const host = world.host();
    const { session, worker } = await working(world, host);
    await host[Symbol.asyncDispose]();
    await using next = world.host({ hostId: "next" });
    await next.started;
    await (
      await next.begin(session, ["echo anew"])
    ).outcome;
    expect((await storyUntil(world, worker, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
  });

  it("reaches the worker of a call that its harness gave up", async () => {
    const gaveUp = new AbortController();
    const world = newWorld({
      harnesses: {
        test: async (_, sink) => {
          await sink.toolCall(spawnCall("c1", { agent: "thinker", prompt: "x" }), { signal: gaveUp.signal });
          await sink.output("without it");
        },
      },
    });
    await using host = world.host();
    const { session, turn, worker } = await working(world, host);
    gaveUp.abort();
    expect(await turn.outcome).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).at(-2)).toBe("OUTPUT without it");
    expect((await storyUntil(world, worker, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
  });

  it("reaches workers that a start finds left behind, and leaves all others alone", async () => {
    const world = newWorld();
    const host = world.host();
    const [left, kept] = [await working(world, host), await working(world, host)];
    await host[Symbol.asyncDispose]();
    // A host that cannot spawn cancels one spawner; nobody tells its worker.
    await using other = world.host({ hostId: "other", tools: undefined });
    await other.spawnTool[Symbol.asyncDispose]();
    await other.controller.cancel({ session: left.session, executionId: "", reason: "USER" });
    // Anybody may annotate a session.
    const pretender = await other.createSession({ harness: "thinker", annotations: { [SPAWNED_BY_ANNOTATION]: left.session } });
    const orphan = await other.createSession({ harness: "thinker", annotations: { [SPAWNED_BY_ANNOTATION]: "nowhere" } });
    for (const session of [pretender, orphan]) await other.begin(session, ["mine"]);
    await other[Symbol.asyncDispose]();
    await using next = world.host({ hostId: "next" });
    await next.started;
    expect((await next.story(left.worker)).slice(-2)).toEqual(cancelled);
    for (const session of [kept.worker, pretender, orphan]) expect((await next.story(session)).at(-1)).toBe("MODEL_CALL");
    await next.controller.cancel({ session: kept.session, executionId: "", reason: "USER" });
    expect((await storyUntil(world, kept.worker, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
  });

  it("deletes workers that had not begun, which a start finds left behind, and leaves all other empty sessions alone", async () => {
    const world = newWorld({ harnesses: { test: both } });
    const host = world.host({ limits: { turnsRunningMax: 2 } });
    const spawners = [await host.createSession(), await host.createSession()];
    for (const session of spawners) await host.begin(session, ["go"]);
    // Of each one's two workers one has its spawner's place, and the other waits for room.
    const waitingOf = async (session: SessionUid) => (await world.workers(session)).filter(({ projection }) => projection.lastSeq === 0);
    const areThere = async () => (await Promise.all(spawners.map((session) => world.workers(session)))).flat().length;
    await expect.poll(areThere).toBe(4);
    for (const session of spawners) await expect.poll(async () => (await waitingOf(session)).length).toBe(1);
    await host[Symbol.asyncDispose]();
    const [left, kept] = spawners as [SessionUid, SessionUid];
    const [[lost], [waits]] = [await waitingOf(left), await waitingOf(kept)];
    await using other = world.host({ hostId: "other", tools: undefined });
    await other.spawnTool[Symbol.asyncDispose]();
    await other.controller.cancel({ session: left, executionId: "", reason: "USER" });
    const pretender = await other.createSession({ annotations: { [SPAWNED_BY_ANNOTATION]: left } });
    const nobodys = await other.createSession();
    await other[Symbol.asyncDispose]();
    await using next = world.host({ hostId: "next" });
    await next.started;
    const isActive = async (session: SessionUid) =>
      (await world.journal.get(session))?.projection.deletionState === DeletionState.DELETION_ACTIVE;
    expect(await isActive(lost!.seed.uid)).toBe(false);
    for (const session of [waits!.seed.uid, pretender, nobodys]) expect(await isActive(session)).toBe(true);
    // It is followed from here on.
    await next.controller.cancel({ session: kept, executionId: "", reason: "USER" });
    await expect.poll(() => isActive(waits!.seed.uid)).toBe(false);
  });

  it("is tried again where the store refuses it just now", async () => {
    const world = newWorld();
    let refused = 0;
    let isDown = false;
    const journal: JournalStore = {
      ...new DyingStore(world.journal, { atAppend: Number.POSITIVE_INFINITY, when: "before" }).view(),
      get: async (session, options) => {
        if (isDown && session[14] === "8") {
          refused += 1;
          throw new HoldfastError("unavailable", "journal: it is away");
        }
        return world.journal.get(session, options);
      },
    };
    await using host = world.host({ journal });
    const { session, worker } = await working(world, host);
    isDown = true;
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    // Both the spawner's journal and the call that gave up tell of it.
    await expect.poll(() => refused).toBe(2);
    world.ports.clock.advance(250);
    await expect.poll(() => refused).toBe(4);
    isDown = false;
    world.ports.clock.advance(1_000);
    expect((await storyUntil(world, worker, (story) => story.at(-1) === "END CANCELED")).slice(-2)).toEqual(cancelled);
  });
});
