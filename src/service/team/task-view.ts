/** A task as callers see it: what its session's row and a few of its records say. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Seq, SessionUid } from "../../base/ids.ts";
import type { Digest } from "../../base/ports.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import { ownApprovals } from "../../controller/index.ts";
import { EventKind, type Event } from "../../gen/agentsessions/v1/common_pb.ts";
import { TaskSchema, TaskWorkerSchema, Task_State, type Task, type TaskWorker } from "../../gen/holdfast/v1/tasks_pb.ts";
import type { JournalStore, SessionRow } from "../../journal/index.ts";
import { messageText } from "../../spi/index.ts";
import { spawnCallOf, workerUid } from "./spawn-call.ts";
import { ENVIRONMENT_ANNOTATION, HOST_ANNOTATION } from "../environment/annotations.ts";

/** Records that are looked at in one step back. */
const LOOK_BACK_RECORDS = 64;
/** A task's prompt is among the first records of its session. */
const PROMPT_RECORDS = 8;
/** Workers that are shown of one task. */
export const TASK_WORKERS_MAX = 1_000;

/** How far the turn of a session has come. */
export function taskState({ projection, holder, ...row }: SessionRow): Task_State {
  const { openTurn, lastEnd, lastSeq } = projection;
  if (openTurn !== undefined) {
    if (holder !== undefined) return Task_State.RUNNING;
    const isWaiting = ownApprovals({ projection, holder, ...row }).some(({ decision }) => decision === undefined);
    return isWaiting ? Task_State.WAITING : Task_State.INTERRUPTED;
  }
  if (lastSeq === 0) return Task_State.RUNNING;
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

/** A task without its result and its workers, as lists have it. */
export async function listedTask(journal: JournalStore, row: SessionRow): Promise<Task> {
  const { uid, project, annotations, createTimeMs } = row.seed;
  return create(TaskSchema, {
    id: uid,
    project,
    environmentId: annotations[ENVIRONMENT_ANNOTATION] ?? "",
    hostId: annotations[HOST_ANNOTATION] ?? "",
    prompt: await promptOf(journal, row),
    state: taskState(row),
    createTime: timestampFromMs(createTimeMs),
    updateTime: timestampFromMs(row.updateTimeMs),
  });
}

/** The whole task. */
export async function wholeTask(
  { journal, digest }: { readonly journal: JournalStore; readonly digest: Digest },
  row: SessionRow,
): Promise<Task> {
  const task = await listedTask(journal, row);
  if (task.state === Task_State.COMPLETED) task.result = await lastWords(journal, row);
  if (task.state === Task_State.FAILED) task.failure = await failureOf(journal, row);
  for await (const worker of workersOf(journal, row, digest)) {
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
  return end?.body.case === "end" ? (end.body.value.error?.description ?? "") : "its turn never began";
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

/** The workers of a session, each before those that it spawned itself. */
async function* workersOf(journal: JournalStore, row: SessionRow, digest: Digest): AsyncGenerator<TaskWorker, void, undefined> {
  const { uid } = row.seed;
  const seen = new Set<SessionUid>();
  const range = { session: uid, fromSeq: ((row.parent?.forkSeq ?? 0) + 1) as Seq };
  for await (const page of journal.read(range)) {
    for (const record of page) {
      if (record.kind !== EventKind.EVENT_TOOL_CALL) continue;
      const { event } = decodeLogRecord(record.bytes);
      const call = event && spawnCallOf(event);
      if (call === undefined) continue;
      const worker = workerUid(uid, call.idempotencyKey, digest);
      const spawned = seen.has(worker) ? undefined : await journal.get(worker);
      if (spawned === undefined) continue;
      seen.add(worker);
      yield create(TaskWorkerSchema, { id: worker, parentId: uid, harness: spawned.seed.harness, state: taskState(spawned) });
      yield* workersOf(journal, spawned, digest);
    }
  }
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
