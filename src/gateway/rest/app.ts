/**
 * The REST front door: the table of routes mounted on Hono, and everything that is the same for all of them.
 *
 * Invariants:
 * - A handler runs only after the guard, authentication and the query's check; nothing is written for a request that fails one.
 * - Whatever is thrown becomes a problem document; what is not a HoldfastError becomes `internal` and tells nothing of itself.
 */

import { Hono, type Context } from "hono";
import { HoldfastError } from "../../base/errors.ts";
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
import type { Caller } from "../../spi/index.ts";
import { Arrivals } from "../arrivals.ts";
import type { Authenticate, Health } from "../contract.ts";
import { reported } from "../fault.ts";
import { readJsonText, type BodyOptions } from "./body.ts";
import { refuseForeignPages } from "./guard.ts";
import { REST_LIMITS, type RestLimits } from "./limits.ts";
import { openApiOf } from "./openapi.ts";
import { HttpRefusal, problemResponse } from "./problem.ts";
import { readQuery } from "./query.ts";
import type { Route } from "./route.ts";
import { routesOf } from "./routes.ts";

/** What the REST app is made of. */
export interface RestOptions {
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
  readonly health: Pick<Health, "ready" | "closing">;
  readonly log: Log;
  readonly authenticate: Authenticate;
  /**
   * True when the server has no token: then only requests to a loopback name are served, and none that a page of another
   * origin caused.
   */
  readonly loopbackOnly: boolean;
  /** The JSON Web Key Set of the key that signs tokens; undefined on a host without one. */
  readonly tokenKeys?: object | undefined;
  readonly limits?: Partial<RestLimits> | undefined;
}

const OPENAPI_PATH = "/openapi.json";
const NOBODY: Caller = { identity: undefined };

/** The REST front door as a Hono app, ready to be mounted on a listener. */
export function createRestApp(options: RestOptions): Hono {
  const limits = { ...REST_LIMITS, ...options.limits };
  const door: Door = { ...options, body: { limits, arrivals: new Arrivals(limits.arrivingBytesMax) } };
  const table = routesOf({ ...options, limits });
  const routes = [...table, openApiRoute(table)];
  const app = new Hono({ strict: true });
  app.use(async (context, next) => {
    if (options.loopbackOnly) refuseForeignPages(context.req.method, context.req.raw.headers);
    if (!URL.canParse(context.req.url)) throw new HttpRefusal(400, "invalid_argument", "Host: must be a host name", { field: "Host" });
    await next();
    context.res.headers.set("x-content-type-options", "nosniff");
    context.res.headers.set("cache-control", "no-store");
  });
  for (const route of routes) {
    app.on(route.method, honoPath(route.path), (context) =>
      serve(context, route, door).catch((error: unknown) => problemResponse(reported(error, route.operationId, options.log))),
    );
  }
  for (const [path, siblings] of Map.groupBy(routes, (route) => route.path)) app.all(honoPath(path), () => refuseMethod(siblings));
  app.notFound(() =>
    problemResponse(new HttpRefusal(404, "not_found", `path: there is no such route; ${OPENAPI_PATH} lists those there are`)),
  );
  app.onError((error) => problemResponse(reported(error, "rest", options.log)));
  return app;
}

/** The document describes itself too, and is made once. */
function openApiRoute(table: readonly Route[]): Route {
  const route: Route = {
    operationId: "openapi",
    method: "GET",
    path: OPENAPI_PATH,
    summary: "This document",
    description: "Made when the server starts, from the routes that it serves.",
    query: {},
    open: true,
    answers: [{ kind: "object", schema: { type: "object" }, description: "An OpenAPI 3.1 document." }],
    handle: () => Promise.resolve(new Response(document, { headers: { "content-type": "application/json" } })),
  };
  const document = JSON.stringify(openApiOf([...table, route]));
  return route;
}

/** What all calls share. */
interface Door extends RestOptions {
  readonly body: BodyOptions;
}

async function serve(context: Context, route: Route, options: Door): Promise<Response> {
  const request = context.req.raw;
  const caller = route.open === true ? NOBODY : options.authenticate(request.headers.get("authorization") ?? undefined);
  const query = readQuery(request.url, route.query);
  const text = route.body === undefined ? "" : await readJsonText(request, options.body);
  const call = new AbortController();
  const onGone = (): void => call.abort(new HoldfastError("cancelled", "the client went away before the answer was ready"));
  if (request.signal.aborted) onGone();
  else request.signal.addEventListener("abort", onGone, { once: true });
  return route.handle({
    context: { caller, signal: route.endsItself === true ? call.signal : AbortSignal.any([call.signal, options.health.closing]) },
    onGone,
    uid: context.req.param("uid") ?? "",
    id: context.req.param("id") ?? "",
    query,
    // HEAD is answered like GET without its body, and nobody would read the events of a stream.
    headers: request.method === "HEAD" ? new Headers() : request.headers,
    text,
  });
}

function refuseMethod(routes: readonly Route[]): Response {
  const allow = routes.map((route) => route.method).join(", ");
  return problemResponse(new HttpRefusal(405, "unimplemented", `method: must be ${allow} on this path`, { headers: { allow } }));
}

function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ":$1");
}
