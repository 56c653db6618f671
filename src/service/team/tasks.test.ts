import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { toHoldfastError, type SessionUid } from "../../base/index.ts";
import type { ControllerLimits } from "../../controller/index.ts";
import {
  CancelTaskRequestSchema,
  CreateTaskRequestSchema,
  GetTaskRequestSchema,
  ListTasksRequestSchema,
  ListTasksResponseSchema,
  Task_State,
  type Task,
} from "../../gen/holdfast/v1/tasks_pb.ts";
import { WatchTeamRequestSchema } from "../../gen/roz/v1/agent_pb.ts";
import { HarnessFailure, messageText, type Authorizer, type Environment } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import {
  gatedCall,
  harnessCatalog,
  seededPorts,
  testHarness,
  TestHost,
  testDigest,
  TestTools,
  toolCall,
  type HarnessRun,
} from "../../testing/index.ts";
import { ALLOW_ALL } from "../access.ts";
import type { CallContext } from "../contract.ts";
import { plainEnvironment } from "../environment/index.ts";
import { workerAnnotations } from "./annotations.ts";
import { workerUid } from "./spawn-call.ts";
import { TASK_WORKERS_MAX } from "./task-view.ts";
import { createTasksService, PROMPT_BYTES_MAX } from "./tasks.ts";

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };
const nobody = "018f0000-0000-7000-8000-000000000000";

interface Setup {
  readonly environment?: Partial<Environment>;
  readonly authorizer?: Authorizer;
  readonly limits?: Partial<ControllerLimits>;
}

function setup(run: HarnessRun, more: Setup = {}) {
  const ports = seededPorts(5);
  const journal = createMemoryStore(ports);
  const tools: TestTools = new TestTools({
    look: async () => ({}),
    spawn: async (call, { session }) => {
      const parent = (await journal.get(session))!;
      const uid = workerUid(session, call.idempotencyKey, ports.digest);
      await host.createSession({ uid, harness: "worker", annotations: workerAnnotations(parent.seed) });
      await (
        await host.begin(uid, ["go"])
      ).outcome;
      return {};
    },
  });
  const harnesses = { agent: testHarness(run), robot: testHarness(run), worker: testHarness(async () => undefined) };
  const host: TestHost = new TestHost({ journal, ports, tools, harnesses, limits: more.limits });
  onTestFinished(() => host[Symbol.asyncDispose]());
  const environment: Environment = { ...plainEnvironment("lab"), ...more.environment };
  const tasks = createTasksService({
    journal,
    controller: host.controller,
    harnesses: harnessCatalog(harnesses),
    defaults: { harness: "agent", model: "m" },
    ports,
    authorizer: more.authorizer ?? ALLOW_ALL,
    environments: { find: (id) => (id === "lab" || id === "" ? environment : undefined), list: () => [environment] },
    tools,
  });
  const newTask = (request: MessageInitShape<typeof CreateTaskRequestSchema> = {}): Promise<Task> =>
    tasks.createTask(create(CreateTaskRequestSchema, { prompt: "do it", environmentId: "lab", ...request }), context);
  const ended = async ({ id }: Task): Promise<Task> => {
    await host.controller.running(id as SessionUid)?.outcome;
    return tasks.getTask(create(GetTaskRequestSchema, { id }), context);
  };
  return { host, journal, tasks, newTask, ended };
}

/** Resolves when the signal fires. */
const once = (signal: AbortSignal): Promise<void> => new Promise((resolve) => signal.addEventListener("abort", () => resolve()));

const refusal = (act: Promise<unknown>) =>
  act.then(
    () => "nothing was refused",
    (error: unknown) => {
      const { code, field = "" } = toHoldfastError(error);
      return `${code} ${field}`.trimEnd();
    },
  );

describe("a task", () => {
  it("is a session in its environment, whose turn has the prompt and what the environment says", async () => {
    const { host, journal, newTask, ended } = setup(async (_, sink) => sink.output("it is done"), {
      environment: { model: "large", hosts: { arm: { labels: {} } } },
    });
    const task = await newTask({ hostId: "arm", name: "t", project: "p" });
    expect(task).toMatchObject({ environmentId: "lab", hostId: "arm", prompt: "do it", project: "p" });
    expect(await ended(task)).toMatchObject({ state: Task_State.COMPLETED, result: "it is done", failure: "", workers: [] });
    const row = (await journal.get(task.id as SessionUid))!;
    expect(row.seed).toMatchObject({ harness: "agent", model: "large", name: "t" });
    const [start] = await host.records(task.id as SessionUid);
    const config = start?.event?.body.case === "executionStart" ? start.event.body.value.config : new Uint8Array();
    expect(JSON.parse(new TextDecoder().decode(config))).toMatchObject({
      model: "large",
      tools: { ask: ["look", "spawn"] },
      client: { tools: [] },
    });
  });

  it("runs where its host says", async () => {
    const { journal, newTask } = setup(async () => undefined, {
      environment: { hosts: { far: { harness: "robot", labels: { room: "4" } } } },
    });
    const task = await newTask({ hostId: "room=4" });
    expect((await journal.get(task.id as SessionUid))?.seed.harness).toBe("robot");
    expect(task.hostId).toBe("far");
  });

  it.each([
    ["without a prompt", { prompt: "  \n" }, "invalid_argument prompt"],
    ["with too long a prompt", { prompt: "x".repeat(PROMPT_BYTES_MAX + 1) }, "resource_exhausted prompt"],
    ["in no environment", { environmentId: "moon" }, "invalid_argument environment_id"],
    ["on no host", { hostId: "moon" }, "invalid_argument host_id"],
    ["in no mode", { mode: "fast" }, "invalid_argument mode"],
    ["in a mode that looks, where there is nothing to look at", { mode: "ooda_re_act" }, "invalid_argument mode"],
    ["with a model that is not to be had", { model: "other" }, "invalid_argument model"],
  ])("is refused %s, and nothing is written", async (_, request, expected) => {
    const { journal, newTask } = setup(async () => undefined, { environment: { models: { small: "s" } } });
    expect(await refusal(newTask(request))).toBe(expected);
    expect((await journal.list({ limit: 5 })).rows).toEqual([]);
  });

  it("is none where the host can begin no more turns, and its name is free again", async () => {
    const { journal, newTask, tasks } = setup(async (_, __, { signal }) => once(signal), { limits: { turnsRunningMax: 1 } });
    const running = await newTask();
    expect(await refusal(newTask({ name: "t" }))).toBe("resource_exhausted");
    expect((await journal.list({ limit: 5 })).rows.map(({ seed }) => seed.uid)).toEqual([running.id]);
    await tasks.cancelTask(create(CancelTaskRequestSchema, { id: running.id }), context);
    expect((await newTask({ name: "t" })).state).toBe(Task_State.RUNNING);
  });

  it("may have the longest prompt", async () => {
    const { newTask, ended } = setup(async () => undefined);
    expect((await ended(await newTask({ prompt: "x".repeat(PROMPT_BYTES_MAX) }))).state).toBe(Task_State.COMPLETED);
  });

  it("says why it failed, and that it waits or was interrupted", async () => {
    const failed = setup(async () => {
      throw new HarnessFailure(9, "there is no paint");
    });
    expect(await failed.ended(await failed.newTask())).toMatchObject({
      state: Task_State.FAILED,
      failure: "there is no paint",
      result: "",
    });
    const parked = setup(async (_, sink) => void (await sink.toolCall(gatedCall("look", "a"))));
    expect((await parked.ended(await parked.newTask())).state).toBe(Task_State.WAITING);
    const thrown = setup(async () => {
      throw new Error("a slip");
    });
    expect((await thrown.ended(await thrown.newTask())).state).toBe(Task_State.INTERRUPTED);
  });

  it("is cancelled, once and again", async () => {
    const { tasks, newTask } = setup(async (_, __, { signal }) => once(signal));
    const task = await newTask();
    expect(task.state).toBe(Task_State.RUNNING);
    for (let time = 0; time < 2; time++) {
      const cancelled = await tasks.cancelTask(create(CancelTaskRequestSchema, { id: task.id }), context);
      expect(cancelled.state).toBe(Task_State.CANCELLED);
    }
  });

  it("has its workers, and what they do is watched", async () => {
    const { tasks, newTask, ended } = setup(async (start, sink) => {
      for (const id of ["a", "b"]) await sink.toolCall(toolCall("spawn", id, { idempotencyKey: `${start.executionId}/${id}` }));
    });
    const task = await ended(await newTask());
    expect(task.workers).toMatchObject([
      { parentId: task.id, harness: "worker", state: Task_State.COMPLETED },
      { parentId: task.id, harness: "worker", state: Task_State.COMPLETED },
    ]);
    const events = await Array.fromAsync(tasks.watchTeam(create(WatchTeamRequestSchema, { taskId: task.id }), context));
    const told = events.map(({ event }) => [event.case, event.value?.workerId]);
    const [one, two] = task.workers.map(({ id }) => id);
    expect(told.filter(([, id]) => id === one).map(([kind]) => kind)).toEqual(["workerStarted", "workerCompleted", "workerExited"]);
    expect(told.filter(([, id]) => id === two)).toHaveLength(3);
  });

  it("shows a worker that has not begun as far as its spawner is, and none that never will", async () => {
    const { host, journal, newTask, ended } = setup(async (start, sink) => {
      const [key = ""] = start.inputs.map(messageText);
      await sink.toolCall(key.startsWith("waits") ? gatedCall("spawn", key) : toolCall("spawn", key));
    });
    const task = await newTask({ prompt: "answered" });
    const uid = task.id as SessionUid;
    await ended(task);
    const shown = async () => (await ended(task)).workers.map(({ id, state }) => [id, state]);
    const first = [workerUid(uid, "answered", testDigest), Task_State.COMPLETED];
    /** A worker whose session is there and has no turn, of a call that has no answer. */
    const waiting = async (key: string) => {
      await (
        await host.begin(uid, [key])
      ).outcome;
      const seed = {
        uid: workerUid(uid, key, testDigest),
        harness: "worker",
        annotations: workerAnnotations((await journal.get(uid))!.seed),
      };
      return host.createSession(seed);
    };
    const deleted = await waiting("waits");
    expect(await shown()).toEqual([first, [deleted, Task_State.INTERRUPTED]]);
    await host.controller.delete(deleted, undefined);
    expect(await shown()).toEqual([first]);
    await host.controller.cancel({ session: uid, executionId: "", reason: "USER" });
    const cancelled = await waiting("waits again");
    expect(await shown()).toEqual([first, [cancelled, Task_State.INTERRUPTED]]);
    await host.controller.cancel({ session: uid, executionId: "", reason: "USER" });
    expect(await shown()).toEqual([first]);
  });

  it("shows so many of its workers and no more", async () => {
    const { newTask, ended } = setup(async (_, sink) => {
      const keys = Array.from({ length: TASK_WORKERS_MAX + 1 }, (__, index) => `key-${index}`);
      await Promise.all(keys.map((key) => sink.toolCall(toolCall("spawn", key))));
    });
    expect((await ended(await newTask())).workers).toHaveLength(TASK_WORKERS_MAX);
  });

  it("is unknown where no session was created as one", async () => {
    const { host, tasks } = setup(async () => undefined);
    const session = await host.createSession({ harness: "agent" });
    const get = (id: string) => refusal(tasks.getTask(create(GetTaskRequestSchema, { id }), context));
    expect([await get(session), await get(nobody), await get("no uid")]).toEqual(["not_found id", "not_found id", "not_found id"]);
    const watch = async (taskId: string) => refusal(Array.fromAsync(tasks.watchTeam(create(WatchTeamRequestSchema, { taskId }), context)));
    expect(await watch(nobody)).toBe("not_found task_id");
  });

  it("is nobody's to make or to read who may not", async () => {
    const authorizer: Authorizer = { authorize: async () => ({ kind: "denied", reason: "no" }) };
    const { tasks, newTask } = setup(async () => undefined, { authorizer });
    for (const request of [{}, { environmentId: "moon" }, { hostId: "moon" }])
      expect(await refusal(newTask(request))).toBe("permission_denied");
    expect(await refusal(tasks.listTasks(create(ListTasksRequestSchema, {}), context))).toBe("permission_denied");
  });
});

describe("listing tasks", () => {
  it("shows those of a project, newest first, and no other session", async () => {
    const { host, tasks, newTask, ended } = setup(async () => undefined);
    const first = await newTask({ prompt: "one" });
    await host.createSession();
    const second = await newTask({ prompt: "two" });
    await newTask({ project: "other" });
    for (const task of [first, second]) await ended(task);
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await tasks.listTasks(create(ListTasksRequestSchema, { pageSize: 1, pageToken }), context);
      seen.push(...page.tasks.map(({ prompt }) => prompt));
      ({ nextPageToken: pageToken } = page);
    } while (pageToken !== "");
    expect(seen.toSorted()).toEqual(["one", "two"]);
  });

  it("ends a page early where prompts are long, and has each task once", async () => {
    const { host, tasks, newTask, ended } = setup(async () => undefined);
    const prompts = Array.from({ length: 9 }, (_, index) => `${index}`.repeat(PROMPT_BYTES_MAX));
    for (const prompt of prompts) {
      await ended(await newTask({ prompt }));
      await host.createSession();
    }
    const seen: string[] = [];
    let pageToken = "";
    let pages = 0;
    do {
      const page = await tasks.listTasks(create(ListTasksRequestSchema, { pageToken }), context);
      expect(toBinary(ListTasksResponseSchema, page).length).toBeLessThan(1024 * 1024 + PROMPT_BYTES_MAX);
      seen.push(...page.tasks.map(({ prompt }) => prompt.slice(0, 1)));
      ({ nextPageToken: pageToken } = page);
      pages += 1;
    } while (pageToken !== "");
    expect(seen.toSorted()).toEqual(prompts.map(([first]) => first));
    expect(pages).toBeGreaterThan(2);
  });

  it("shows the prompt that a task was created with, whatever its session was told later", async () => {
    const { host, tasks, newTask, ended } = setup(async (_, sink) => sink.output("x"));
    const task = await ended(await newTask({ prompt: "first" }));
    await (
      await host.begin(task.id as SessionUid, ["second"])
    ).outcome;
    expect((await tasks.getTask(create(GetTaskRequestSchema, { id: task.id }), context)).prompt).toBe("first");
  });
});
