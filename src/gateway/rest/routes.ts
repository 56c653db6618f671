/** The table of routes. What is served, what is documented and what is refused with 405 all come from here. */

import type { Log } from "../../base/ports.ts";
import type {
  FeedbackService,
  EnvironmentsService,
  JournalService,
  SessionsService,
  TasksService,
  ToolCallsService,
  TurnsService,
} from "../../service/contract.ts";
import type { Health } from "../contract.ts";
import { checkRoute } from "./check-route.ts";
import { environmentRoutes } from "./environment-routes.ts";
import { feedbackRoute } from "./feedback-route.ts";
import { exportRoute } from "./export-route.ts";
import { lifecycleRoutes } from "./lifecycle-routes.ts";
import { liveRoutes } from "./live-routes.ts";
import type { RestLimits } from "./limits.ts";
import type { Route } from "./route.ts";
import { sessionRoutes } from "./session-routes.ts";
import { jsonResponse } from "./json.ts";
import { taskRoutes } from "./task-routes.ts";
import { toolCallRoutes } from "./tool-call-routes.ts";
import { watchApprovalsRoute } from "./watch-approvals-route.ts";
import { steerRoute } from "./turn-routes.ts";

/** What the routes call. */
export interface RouteDependencies {
  readonly sessions: SessionsService;
  readonly journal: JournalService;
  readonly toolCalls: ToolCallsService;
  readonly turns: TurnsService;
  /** Absent where none is kept. */
  readonly feedback?: FeedbackService | undefined;
  /** Absent where there are no tasks. */
  readonly tasks?: TasksService | undefined;
  /** Absent where there are none to be read and changed. */
  readonly environments?: EnvironmentsService | undefined;
  readonly health: Pick<Health, "ready">;
  readonly tokenKeys?: object | undefined;
  readonly limits: RestLimits;
  readonly log: Log;
}

/** Every route of the REST front door but the OpenAPI document, which is made from these. */
export function routesOf(dependencies: RouteDependencies): readonly Route[] {
  return [
    ...healthRoutes(dependencies.health),
    ...(dependencies.tokenKeys === undefined ? [] : [tokenKeysRoute(dependencies.tokenKeys)]),
    ...sessionRoutes(dependencies),
    ...lifecycleRoutes(dependencies),
    ...toolCallRoutes(dependencies),
    watchApprovalsRoute(dependencies),
    steerRoute(dependencies.turns),
    ...liveRoutes(dependencies),
    ...(dependencies.feedback === undefined ? [] : [feedbackRoute(dependencies.feedback)]),
    ...(dependencies.tasks === undefined ? [] : taskRoutes(dependencies.tasks)),
    checkRoute(dependencies),
    exportRoute(dependencies),
    ...(dependencies.environments === undefined ? [] : environmentRoutes(dependencies.environments)),
  ];
}

/** Whoever is shown a token checks it with these. */
function tokenKeysRoute(keys: object): Route {
  return {
    operationId: "jwks",
    method: "GET",
    path: "/.well-known/jwks.json",
    summary: "The keys that tokens are checked with",
    description: "The JSON Web Key Set of the key with which this host signs the transaction tokens of harnesses.",
    query: {},
    open: true,
    answers: [{ kind: "object", schema: { type: "object", required: ["keys"] }, description: "A JSON Web Key Set (RFC 7517)." }],
    handle: () => Promise.resolve(new Response(JSON.stringify(keys), { headers: { "content-type": "application/json" } })),
  };
}

const STATUS_SCHEMA = {
  type: "object",
  required: ["server", "status"],
  properties: { server: { type: "string", const: "holdfast" }, status: { type: "string", const: "ok" } },
};

function statusOk(): Response {
  return jsonResponse({ server: "holdfast", status: "ok" });
}

function healthRoutes(health: Pick<Health, "ready">): readonly Route[] {
  return [
    {
      operationId: "healthz",
      method: "GET",
      path: "/healthz",
      summary: "Whether the process is alive",
      description: "Answers as long as the process does, and says that it is Holdfast.",
      query: {},
      open: true,
      answers: [{ kind: "object", schema: STATUS_SCHEMA, description: "The process is alive." }],
      handle: () => Promise.resolve(statusOk()),
    },
    {
      operationId: "readyz",
      method: "GET",
      path: "/readyz",
      summary: "Whether the server can serve",
      description: "503 while the journal cannot be used or the server is shutting down.",
      query: {},
      open: true,
      answers: [{ kind: "object", schema: STATUS_SCHEMA, description: "The server takes calls." }],
      async handle({ context }) {
        await health.ready({ signal: context.signal });
        return statusOk();
      },
    },
  ];
}
