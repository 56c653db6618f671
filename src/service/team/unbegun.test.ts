import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { SEQ_NONE, SILENT_LOG, type HostId, type SessionUid } from "../../base/index.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import { CreateTaskRequestSchema, GetTaskRequestSchema, ListTasksRequestSchema, Task_State } from "../../gen/holdfast/v1/tasks_pb.ts";
import { WatchTeamRequestSchema } from "../../gen/roz/v1/agent_pb.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { emptySeed, harnessCatalog, seededPorts, testHarness, TestHost } from "../../testing/index.ts";
import { SimulatedTime } from "../../testing/simulator/time.ts";
import { ALLOW_ALL } from "../access.ts";
import type { CallContext } from "../contract.ts";
import { KIND_ANNOTATION } from "../environment/annotations.ts";
import { plainEnvironment } from "../environment/index.ts";
import { LOOKED_AT_MAX } from "./empty-sessions.ts";
import { BEGINNING_MAX_MS } from "./task-view.ts";
import { createTasksService } from "./tasks.ts";
import { dropUnbegunTasks } from "./unbegun.ts";

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };

function setup() {
  const time = new SimulatedTime();
  const ports = { ...seededPorts(7), clock: time.clock };
  const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
  const harnesses = { agent: testHarness(async (_, sink) => sink.output("done")) };
  const host = new TestHost({ journal, ports, harnesses });
  onTestFinished(() => host[Symbol.asyncDispose]());
  const environment = plainEnvironment("lab");
  const tasks = createTasksService({
    journal,
    controller: host.controller,
    harnesses: harnessCatalog(harnesses),
    defaults: { harness: "agent", model: "m" },
    ports,
    authorizer: ALLOW_ALL,
    environments: { find: () => environment, list: () => [environment] },
  });
  /** A task as a host leaves it that stops between its creation and its turn. */
  const unbegun = async (name = "") => {
    const uid = `task-${time.clock.nowMs()}-${name}` as SessionUid;
    const seed = { ...emptySeed(uid, time.clock.nowMs()), harness: "agent", name, annotations: { [KIND_ANNOTATION]: "task" } };
    await journal.create(seed);
    return uid;
  };
  const begun = async () => {
    const { id } = await tasks.createTask(create(CreateTaskRequestSchema, { prompt: "do it" }), context);
    await host.controller.running(id as SessionUid)?.outcome;
    return id as SessionUid;
  };
  const task = (id: SessionUid) => tasks.getTask(create(GetTaskRequestSchema, { id }), context);
  const listed = async () => (await tasks.listTasks(create(ListTasksRequestSchema, {}), context)).tasks.map(({ id }) => id);
  const stopping = new AbortController();
  const dropping = (seen: Pick<typeof journal, "get" | "list"> = journal) =>
    dropUnbegunTasks({ journal: seen, controller: host.controller, clock: time.clock, signal: stopping.signal });
  return { time, journal, host, tasks, unbegun, begun, task, listed, dropping, stopping };
}

describe("a task that was created and whose turn never began", () => {
  it("is running as long as it may be beginning, and then has failed, with a reason", async () => {
    const { time, unbegun, task } = setup();
    const uid = await unbegun();
    await time.elapse(BEGINNING_MAX_MS - 1);
    expect(await task(uid)).toMatchObject({ state: Task_State.RUNNING, failure: "" });
    await time.elapse(1);
    expect(await task(uid)).toMatchObject({ state: Task_State.FAILED, failure: "its turn never began; create it again" });
  });

  it("is deleted by the next start, and its name is free again; those that have a turn, and other sessions, stay", async () => {
    const { time, journal, host, unbegun, begun, task, listed, dropping } = setup();
    const lost = await unbegun("n");
    const [kept, session] = [await begun(), await host.createSession()];
    await time.elapse(BEGINNING_MAX_MS);
    expect(await dropping()).toBe(1);
    expect(await listed()).toEqual([kept]);
    expect((await journal.list({ limit: 5 })).rows.map(({ seed }) => seed.uid).toSorted()).toEqual([kept, session].toSorted());
    expect(await task(lost)).toMatchObject({ state: Task_State.FAILED, failure: "its turn never began; create it again" });
    expect((await task(kept)).state).toBe(Task_State.COMPLETED);
    const again = await unbegun("n");
    expect((await journal.get(again))?.seed.name).toBe("n");
  });

  it("is left alone while another host may be about to begin it, and looked at once more", async () => {
    const { time, host, unbegun, listed, dropping } = setup();
    const [lost, late] = [await unbegun("lost"), await unbegun("late")];
    const dropped = dropping();
    await time.elapse(BEGINNING_MAX_MS / 2);
    expect(await listed()).toHaveLength(2);
    await (
      await host.begin(late, ["go"])
    ).outcome;
    await time.elapse(BEGINNING_MAX_MS / 2);
    expect(await dropped).toBe(1);
    expect(await listed()).toEqual([late]);
    expect(await listed()).not.toContain(lost);
  });

  it("goes on where it is begun, or taken to be begun, just as it is looked at, however late that is", async () => {
    const { time, journal, host, unbegun, dropping } = setup();
    const [begins, taken] = [await unbegun("begins"), await unbegun("taken")];
    await time.elapse(BEGINNING_MAX_MS);
    const list: typeof journal.list = async (request) => {
      const page = await journal.list(request);
      await (
        await host.begin(begins, ["go"])
      ).outcome;
      const writer = { kind: "claim", holder: "elsewhere" as HostId, leaseMs: 10 * BEGINNING_MAX_MS } as const;
      await journal.append({ session: taken, expectedLastSeq: SEQ_NONE, writer, events: [] });
      return page;
    };
    const dropped = dropping({ get: (uid) => journal.get(uid), list });
    await time.elapse(BEGINNING_MAX_MS);
    expect(await dropped).toBe(0);
    for (const uid of [begins, taken]) {
      expect((await journal.get(uid))?.projection.deletionState).toBe(DeletionState.DELETION_ACTIVE);
    }
    expect((await journal.get(begins))?.projection.lastEnd).toBe("COMPLETED");
  });

  it("is not looked for beyond so many sessions", async () => {
    const { time, journal, host, unbegun, dropping } = setup();
    const oldest = await unbegun("oldest");
    await time.elapse(1);
    const old = await unbegun("old");
    await time.elapse(1);
    for (let made = 1; made < LOOKED_AT_MAX; made++) await host.createSession();
    await time.elapse(BEGINNING_MAX_MS);
    expect(await dropping()).toBe(1);
    const states = await Promise.all([oldest, old].map(async (uid) => (await journal.get(uid))?.projection.deletionState));
    expect(states).toEqual([DeletionState.DELETION_ACTIVE, DeletionState.DELETION_PENDING]);
  });

  it("is left to the next start where this one ends first", async () => {
    const { time, unbegun, listed, dropping, stopping } = setup();
    await unbegun();
    const dropped = dropping();
    await time.settle();
    stopping.abort(new Error("the host stops"));
    await expect(dropped).rejects.toThrow("the host stops");
    expect(await listed()).toHaveLength(1);
  });

  it("is watched until it is deleted", async () => {
    const { time, tasks, unbegun, dropping } = setup();
    const uid = await unbegun();
    const watched = Array.fromAsync(tasks.watchTeam(create(WatchTeamRequestSchema, { taskId: uid }), context));
    await time.elapse(BEGINNING_MAX_MS);
    expect(await dropping()).toBe(1);
    expect(await watched).toEqual([]);
    expect(await Array.fromAsync(tasks.watchTeam(create(WatchTeamRequestSchema, { taskId: uid }), context))).toEqual([]);
  });
});
