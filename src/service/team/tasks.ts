/**
 * Tasks: prompts that run as sessions of an environment, and teams of them.
 *
 * Invariants:
 * - A task is its session and nothing else: what is said of it is read from there (I8).
 * - Nothing is written before everything in a request was found valid, and nothing is left of a task whose turn could not be begun.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import { utf8Length } from "../../base/bytes.ts";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import { sessionUidOf } from "../../base/ids.ts";
import type { Controller, ExecInvocation } from "../../controller/index.ts";
import {
  ListTasksResponseSchema,
  TaskSchema,
  type CreateTaskRequest,
  type ListTasksRequest,
  type ListTasksResponse,
  type Task,
} from "../../gen/holdfast/v1/tasks_pb.ts";
import type { ListCursor, ListPage, SessionRow } from "../../journal/index.ts";
import {
  textMessage,
  type Action,
  type Authorizer,
  type Environment,
  type EnvironmentCatalog,
  type ToolExecutor,
} from "../../spi/index.ts";
import { accessSession, authorize } from "../access.ts";
import type { AgentService, CallContext, TasksService } from "../contract.ts";
import { createFrom, seedOf, type CreationContext } from "../creation.ts";
import { resolveContextTokens, resolveHost, resolveModel, turnConfig, type ResolvedHost, type TurnMode } from "../environment/index.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "../limits.ts";
import { pageSizeOf, pageToken, readPageToken } from "../list-request.ts";
import { nameText, overLimit } from "../text.ts";
import { ENVIRONMENT_ANNOTATION, HOST_ANNOTATION, isTask, KIND_ANNOTATION } from "../environment/annotations.ts";
import { RememberedSpawns } from "./spawned.ts";
import { listedTask, wholeTask } from "./task-view.ts";
import { watchTeam } from "./watch-team.ts";

/** What tasks are made with. */
export interface TasksServiceOptions extends CreationContext {
  readonly controller: Controller;
  readonly authorizer: Authorizer;
  readonly environments: EnvironmentCatalog;
  /** The host's tools; undefined on a host without any. */
  readonly tools?: Pick<ToolExecutor, "list"> | undefined;
  readonly limits?: Partial<ServiceLimits> | undefined;
}

type Host = TasksServiceOptions & { readonly limits: ServiceLimits; readonly spawns: RememberedSpawns };

/** Bytes of a task's prompt. */
export const PROMPT_BYTES_MAX = 256 * 1024;

/** Creates the handlers of `holdfast.v1.Tasks`, and of WatchTeam. They hold no state of their own but what saves reading journals again. */
export function createTasksService(options: TasksServiceOptions): TasksService & Pick<AgentService, "watchTeam"> {
  const spawns = new RememberedSpawns(options.journal);
  const host: Host = { ...options, limits: { ...SERVICE_LIMITS, ...options.limits }, spawns };
  return {
    createTask: (request, context) => createTask(host, request, context),
    listTasks: (request, context) => listTasks(host, request, context),
    getTask: async ({ id }, context) => wholeTask(host, await taskRow(host, "session.read", id, context)),
    async cancelTask({ id }, context) {
      const { seed } = await taskRow(host, "session.cancel", id, context);
      return wholeTask(host, await host.controller.cancel({ session: seed.uid, executionId: "", reason: "USER" }));
    },
    async *watchTeam({ taskId }, context) {
      const row = await accessSession(host, "session.read", sessionUidOf(taskId, "task_id"), "task_id", context);
      const sources = { journal: host.journal, controller: host.controller, digest: host.ports.digest };
      yield* watchTeam(sources, row, context.signal);
      context.signal.throwIfAborted();
    },
  };
}

async function createTask(host: Host, request: CreateTaskRequest, context: CallContext): Promise<Task> {
  const { controller, limits } = host;
  const project = nameText(request.project, "project", limits.nameCharsMax);
  // Errors name what an environment has, which is for those alone who may use it.
  await authorize(host.authorizer, "session.create", { project }, context);
  await authorize(host.authorizer, "session.exec", { project }, context);
  const environment = environmentOf(host, request.environmentId);
  const hostTools = host.tools?.list().map(({ definition }) => definition.name) ?? [];
  const place = resolveHost(environment, request.hostId, hostTools);
  const invocation: ExecInvocation = {
    inputs: [textMessage("user", promptIn(request))],
    caller: context.caller.identity,
    harness: "",
    config: configOf(environment, request, { place, hostTools }),
    resumeFromSeq: 0n,
    expectedLastSeq: undefined,
    deadlineMs: undefined,
  };
  const draft = {
    project,
    name: nameText(request.name, "name", limits.nameCharsMax),
    harness: place.harness,
    model: resolveModel(environment, request.model),
    identity: undefined,
    origin: undefined,
    labels: {},
    annotations: {
      [KIND_ANNOTATION]: "task",
      [ENVIRONMENT_ANNOTATION]: environment.id,
      ...(place.hostId === "" ? {} : { [HOST_ANNOTATION]: place.hostId }),
    },
  };
  const seed = seedOf(host, draft, context, "harness");
  await controller.plan(seed, invocation);
  context.signal.throwIfAborted();
  const row = await createFrom(host, seed, context);
  try {
    await controller.begin(row.seed.uid, await controller.plan(row, invocation));
  } catch (error) {
    // Nobody would ever begin it: what could not be begun is no task. Where that cannot be written either, the error is still the first one.
    await controller.delete(row.seed.uid, undefined).catch(() => undefined);
    throw error;
  }
  return listedTask(host, (await host.journal.get(row.seed.uid)) ?? row);
}

function environmentOf({ environments }: Host, id: string): Environment {
  const environment = environments.find(id);
  if (environment !== undefined) return environment;
  throw invalidArgument("environment_id", "must be the id of an environment of this host, or be empty for the default one");
}

function promptIn({ prompt }: CreateTaskRequest): string {
  if (prompt.trim() === "") throw invalidArgument("prompt", "must say what is to be done");
  const bytes = utf8Length(prompt);
  if (bytes > PROMPT_BYTES_MAX) throw overLimit("prompt", `takes ${bytes} bytes; at most ${PROMPT_BYTES_MAX} are allowed`);
  return prompt;
}

function configOf(
  environment: Environment,
  { mode, model }: CreateTaskRequest,
  { place, hostTools }: { readonly place: ResolvedHost; readonly hostTools: readonly string[] },
): Uint8Array {
  return turnConfig(environment, {
    mode: modeOf(mode),
    modeField: "mode",
    host: place,
    clientTools: [],
    hostTools,
    projectContext: [],
    maxContextTokens: resolveContextTokens(environment, undefined),
    model: resolveModel(environment, model),
    messageId: "",
  });
}

function modeOf(mode: string): TurnMode | undefined {
  if (mode === "") return undefined;
  if (mode === "react" || mode === "ooda_re_act") return mode;
  throw invalidArgument("mode", "must be react or ooda_re_act, or be empty");
}

async function listTasks(host: Host, request: ListTasksRequest, context: CallContext): Promise<ListTasksResponse> {
  const { journal, limits, ports } = host;
  const project = nameText(request.project, "project", limits.nameCharsMax);
  const limit = pageSizeOf(request.pageSize, limits, "sessions");
  const after = request.pageToken === "" ? undefined : readPageToken(request.pageToken, project, ports.digest);
  await authorize(host.authorizer, "session.list", { project }, context);
  const page = await tasksIn(host, await journal.list({ project, after, limit, signal: context.signal }), limits.pageBytesSoftMax);
  const nextPageToken = page.next === undefined ? "" : pageToken(page.next, project, ports.digest);
  return create(ListTasksResponseSchema, { tasks: page.tasks, nextPageToken });
}

/** The tasks of a page of sessions. It ends early where they get large, so that an answer stays within what clients receive; one always fits. */
async function tasksIn(
  host: Host,
  { rows, next }: ListPage,
  bytesMax: number,
): Promise<{ readonly tasks: Task[]; readonly next: ListCursor | undefined }> {
  const tasks: Task[] = [];
  let bytes = 0;
  let last: SessionRow | undefined;
  for (const row of rows) {
    const task = isTask(row.seed) ? await listedTask(host, row) : undefined;
    bytes += task === undefined ? 0 : toBinary(TaskSchema, task).length;
    if (bytes > bytesMax && tasks.length > 0 && last !== undefined) {
      return { tasks, next: { createTimeMs: last.seed.createTimeMs, uid: last.seed.uid } };
    }
    if (task !== undefined) tasks.push(task);
    last = row;
  }
  return { tasks, next };
}

async function taskRow(host: Host, action: Action, id: string, context: CallContext): Promise<SessionRow> {
  const row = await accessSession(host, action, sessionUidOf(id, "id"), "id", context);
  if (isTask(row.seed)) return row;
  throw new HoldfastError("not_found", "id: the session with this uid was not created as a task", { field: "id" });
}
