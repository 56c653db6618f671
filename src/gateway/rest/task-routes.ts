/** Tasks as routes. */

import { create } from "@bufbuild/protobuf";
import {
  CancelTaskRequestSchema,
  CreateTaskRequestSchema,
  GetTaskRequestSchema,
  ListTasksRequestSchema,
  ListTasksResponseSchema,
  TaskSchema,
} from "../../gen/holdfast/v1/tasks_pb.ts";
import type { TasksService } from "../../service/contract.ts";
import { decodeJsonText } from "./decode.ts";
import { jsonResponse, messageJson } from "./json.ts";
import { parametersOf } from "./query.ts";
import type { Answer, Route } from "./route.ts";
import { pathUid } from "./session-routes.ts";

const TASK = { kind: "message", status: 200, schema: TaskSchema, description: "The task." } as const satisfies Answer;

/** The routes of tasks. */
export function taskRoutes(tasks: TasksService): readonly Route[] {
  return [...collectionRoutes(tasks), ...memberRoutes(tasks)];
}

function collectionRoutes(tasks: TasksService): readonly Route[] {
  return [
    {
      operationId: "createTask",
      method: "POST",
      path: "/api/v1/tasks",
      summary: "Run a prompt as a task",
      description: "Answers once the turn of the task's session has begun; it goes on by itself. The task's id is the uid of its session.",
      query: {},
      body: CreateTaskRequestSchema,
      answers: [{ ...TASK, status: 201, description: "The new task; `Location` is its path." }],
      async handle({ text, context }) {
        const task = await tasks.createTask(decodeJsonText(CreateTaskRequestSchema, text), context);
        const location = `/api/v1/tasks/${encodeURIComponent(task.id)}`;
        return jsonResponse(messageJson(TaskSchema, task), { status: 201, headers: { location } });
      },
    },
    {
      operationId: "listTasks",
      method: "GET",
      path: "/api/v1/tasks",
      summary: "List the tasks of a project",
      description: "Newest first, without their results and their workers.",
      query: parametersOf(ListTasksRequestSchema, {
        project: "The exact project; empty is the default project.",
        page_size: "Sessions that a page looks at, at most: 0 is 50, more than 500 is 500.",
        page_token: "The `next_page_token` of the page before; empty for the first page.",
      }),
      answers: [
        { kind: "message", status: 200, schema: ListTasksResponseSchema, description: "One page; it may be empty and not the last." },
      ],
      async handle({ query, context }) {
        const request = create(ListTasksRequestSchema, {
          project: query.text("project"),
          pageSize: query.int32("page_size") ?? 0,
          pageToken: query.text("page_token"),
        });
        return jsonResponse(messageJson(ListTasksResponseSchema, await tasks.listTasks(request, context)));
      },
    },
  ];
}

function memberRoutes(tasks: TasksService): readonly Route[] {
  return [
    {
      operationId: "getTask",
      method: "GET",
      path: "/api/v1/tasks/{uid}",
      summary: "Read a task",
      description: "With its result once it has one, and with its workers.",
      query: {},
      answers: [TASK],
      async handle({ uid, context }) {
        return jsonResponse(messageJson(TaskSchema, await tasks.getTask(create(GetTaskRequestSchema, { id: uid }), context)));
      },
    },
    {
      operationId: "cancelTask",
      method: "POST",
      path: "/api/v1/tasks/{uid}/cancel",
      summary: "Cancel a task",
      description: "Its turn and those of its workers. Answers once its end is durable; a task that has ended is returned as it is.",
      query: {},
      body: CancelTaskRequestSchema,
      answers: [TASK],
      async handle({ uid, text, context }) {
        const request = decodeJsonText(CancelTaskRequestSchema, text);
        request.id = pathUid(uid, request.id, "id");
        return jsonResponse(messageJson(TaskSchema, await tasks.cancelTask(request, context)));
      },
    },
  ];
}
