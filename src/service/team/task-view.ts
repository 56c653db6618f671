/** A task as callers see it: what its session's row and a few of its records say. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Seq, SessionUid } from "../../base/ids.ts";
import type { Ports } from "../../base/ports.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import { ownApprovals } from "../../controller/index.ts";
import { EventKind, type Event } from "../../gen/agentsessions/v1/common_pb.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import { TaskSchema, TaskWorkerSchema, Task_State, type Task, type TaskWorker } from "../../gen/holdfast/v1/tasks_pb.ts";
import type { JournalStore, SessionRow } from "../../journal/index.ts";
import { messageText } from "../../spi/index.ts";
import { workerUid } from "./spawn-call.ts";
import type { RememberedSpawns, Spawn } from "./spawned.ts";
import { ENVIRONMENT_ANNOTATION, HOST_ANNOTATION } from "../environment/annotations.ts";

/** Records that are looked at in one step back. */
const LOOK_BACK_RECORDS = 64;
/** A task's prompt is among the first records of its session. */
const PROMPT_RECORDS = 8;
/** Workers that are shown of one task. */
export const TASK_WORKERS_MAX = 1_000;
/** How long a task may be without a record and still be beginning; most of that is the wait for its harness. */
export const BEGINNING_MAX_MS = 60_000;

const NEVER_BEGUN = "its turn never began; create it again";

/** What views of tasks need. */
export interface TaskViewContext {
  readonly journal: JournalStore;
  readonly spawns: RememberedSpawns;
  readonly ports: Pick<Ports, "clock" | "digest">;
}

/** Whether a session was created and its host stopped before its turn began: nobody is about to begin it any more. */
export function isUnbegun({ seed, projection, holder }: SessionRow, nowMs: number): boolean {
  return projection.lastSeq === 0 && holder === undefined && nowMs - seed.createTimeMs >= BEGINNING_MAX_MS;
}

/** How far the turn of a session that has records has come. */
function turnState({ projection, holder, ...row }: SessionRow): Task_State {
  const { openTurn, lastEnd } = projection;
  if (openTurn !== undefined) {
    if (holder !== undefined) return Task_State.RUNNING;
    const isWaiting = ownApprovals({ projection, holder, ...row }).some(({ decision }) => decision === undefined);
    return isWaiting ? Task_State.WAITING : Task_State.INTERRUPTED;
  }
  switch (lastEnd) {
    case "COMPLETED":
      return Task_State.COMPLETED;
    case "CANCELED":
      return Task_State.CANCELLED;
    case "FAILED":
    case undefined:
      return Task_State.FAILED;
  }
}

function taskState(row: SessionRow, nowMs: number): Task_State {
  if (row.projection.lastSeq > 0) return turnState(row);
  return isUnbegun(row, nowMs) ? Task_State.FAILED : Task_State.RUNNING;
}

/** A task without its result and its workers, as lists have it. */
export async function listedTask({ journal, ports }: TaskViewContext, row: SessionRow): Promise<Task> {
  const { uid, project, annotations, createTimeMs } = row.seed;
  return create(TaskSchema, {
    id: uid,
    project,
    environmentId: annotations[ENVIRONMENT_ANNOTATION] ?? "",
    hostId: annotations[HOST_ANNOTATION] ?? "",
    prompt: await promptOf(journal, row),
    state: taskState(row, ports.clock.nowMs()),
    createTime: timestampFromMs(createTimeMs),
    updateTime: timestampFromMs(row.updateTimeMs),
  });
}

/** The whole task. */
export async function wholeTask(context: TaskViewContext, row: SessionRow): Promise<Task> {
  const { journal } = context;
  const task = await listedTask(context, row);
  if (task.state === Task_State.COMPLETED) task.result = await lastWords(journal, row);
  if (task.state === Task_State.FAILED) task.failure = await failureOf(journal, row);
  for await (const worker of workersOf(context, row)) {
    task.workers.push(worker);
    if (task.workers.length === TASK_WORKERS_MAX) break;
  }
  return task;
}

async function promptOf(journal: JournalStore, row: SessionRow): Promise<string> {
  const fromSeq = (row.parent?.forkSeq ?? 0) + 1;
  for await (const event of eventsOf(journal, row, { fromSeq, toSeq: fromSeq + PROMPT_RECORDS })) {
    if (event.kind === EventKind.EVENT_INPUT && event.body.case === "message") return messageText(event.body.value);
  }
  return "";
}

async function lastWords(journal: JournalStore, row: SessionRow): Promise<string> {
  const output = await lastOf(journal, row, ({ kind }) => kind === EventKind.EVENT_OUTPUT);
  return output?.body.case === "message" ? messageText(output.body.value) : "";
}

async function failureOf(journal: JournalStore, row: SessionRow): Promise<string> {
  const end = await lastOf(journal, row, ({ kind }) => kind === EventKind.EVENT_END);
  return end?.body.case === "end" ? (end.body.value.error?.description ?? "") : NEVER_BEGUN;
}

/** The last event of the session that is so. */
async function lastOf(journal: JournalStore, row: SessionRow, isSo: (event: Event) => boolean): Promise<Event | undefined> {
  for (let toSeq: number = row.projection.lastSeq; toSeq > 0; toSeq -= LOOK_BACK_RECORDS) {
    let found: Event | undefined;
    for await (const event of eventsOf(journal, row, { fromSeq: Math.max(1, toSeq - LOOK_BACK_RECORDS + 1), toSeq })) {
      if (isSo(event)) found = event;
    }
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The workers of a session, each before those that it spawned itself. One whose turn could not be begun was never there. */
async function* workersOf(context: TaskViewContext, row: SessionRow): AsyncGenerator<TaskWorker, void, undefined> {
  const { journal, spawns, ports } = context;
  const { uid } = row.seed;
  const seen = new Set<SessionUid>();
  for (const spawn of await spawns.of(row)) {
    const id = workerUid(uid, spawn.key, ports.digest);
    const worker = seen.has(id) ? undefined : await journal.get(id);
    const state = worker === undefined ? undefined : workerState(row, spawn, worker);
    if (worker === undefined || state === undefined) continue;
    seen.add(id);
    yield create(TaskWorkerSchema, { id, parentId: uid, harness: worker.seed.harness, state });
    yield* workersOf(context, worker);
  }
}

/** How far a worker has come. Before its turn it is where its spawner is, and nowhere once nobody waits for it. */
function workerState(spawner: SessionRow, { callSeq, isAnswered }: Spawn, worker: SessionRow): Task_State | undefined {
  const { lastEnd, openTurn: ownTurn, deletionState } = worker.projection;
  if (ownTurn !== undefined || lastEnd !== undefined) return turnState(worker);
  if (deletionState !== DeletionState.DELETION_ACTIVE) return undefined;
  const { openTurn } = spawner.projection;
  if (isAnswered || openTurn === undefined || openTurn.startSeq > callSeq) return undefined;
  return spawner.holder === undefined ? Task_State.INTERRUPTED : Task_State.RUNNING;
}

async function* eventsOf(
  journal: JournalStore,
  row: SessionRow,
  range: { readonly fromSeq: number; readonly toSeq: number },
): AsyncGenerator<Event, void, undefined> {
  const { fromSeq, toSeq } = range;
  for await (const page of journal.read({ session: row.seed.uid, fromSeq: fromSeq as Seq, toSeq: toSeq as Seq })) {
    for (const record of page) {
      const { event } = decodeLogRecord(record.bytes);
      if (event !== undefined) yield event;
    }
  }
}
