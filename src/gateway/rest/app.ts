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
import type { JournalService, SessionsService } from "../../service/contract.ts";
import type { Caller } from "../../spi/index.ts";
import { readJsonText } from "./body.ts";
import { refuseForeignPages } from "./guard.ts";
import { REST_LIMITS, type RestLimits } from "./limits.ts";
import { openApiOf } from "./openapi.ts";
import { faultOf, HttpRefusal, problemResponse } from "./problem.ts";
import { readQuery } from "./query.ts";
import type { Route } from "./route.ts";
import { routesOf, type HealthProbe } from "./routes.ts";

/** What the REST app is made of. */
export interface RestOptions {
  readonly sessions: SessionsService;
  readonly journal: JournalService;
  readonly health: HealthProbe;
  readonly log: Log;
  /** Who sent a request with this Authorization header. Throws UNAUTHENTICATED. */
  readonly authenticate: (authorization: string | undefined) => Caller;
  /**
   * True when the server has no token: then only requests to a loopback name are served, and none that a page of another
   * origin caused.
   */
  readonly loopbackOnly: boolean;
  /** Fires when the server gives up open streams; they end with an UNAVAILABLE event. Default: never. */
  readonly drain?: AbortSignal | undefined;
  readonly limits?: Partial<RestLimits> | undefined;
}

const OPENAPI_PATH = "/openapi.json";
const NOBODY: Caller = { identity: undefined };

/** The REST front door as a Hono app, ready to be mounted on a listener. */
export function createRestApp(options: RestOptions): Hono {
  const limits = { ...REST_LIMITS, ...options.limits };
  const drain = options.drain ?? new AbortController().signal;
  const table = routesOf({ ...options, limits, drain });
  const routes = [...table, openApiRoute(table)];
  const app = new Hono({ strict: true });
  app.use(async (context, next) => {
    if (options.loopbackOnly) refuseForeignPages(context.req.method, context.req.raw.headers);
    await next();
    context.res.headers.set("x-content-type-options", "nosniff");
    context.res.headers.set("cache-control", "no-store");
  });
  for (const route of routes) {
    app.on(route.method, honoPath(route.path), (context) => serve(context, route, { options, limits, drain }));
  }
  for (const [path, siblings] of Map.groupBy(routes, (route) => route.path)) app.all(honoPath(path), () => refuseMethod(siblings));
  app.notFound(() =>
    problemResponse(new HttpRefusal(404, "not_found", `path: there is no such route; ${OPENAPI_PATH} lists those there are`)),
  );
  app.onError((error, context) => failed(error, context, options.log));
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

interface Serving {
  readonly options: RestOptions;
  readonly limits: RestLimits;
  readonly drain: AbortSignal;
}

async function serve(context: Context, route: Route, { options, limits, drain }: Serving): Promise<Response> {
  const request = context.req.raw;
  const caller = route.open === true ? NOBODY : options.authenticate(request.headers.get("authorization") ?? undefined);
  const query = readQuery(request.url, route.query);
  const abort = new AbortController();
  const signal = AbortSignal.any([request.signal, abort.signal, drain]);
  const text = route.body === undefined ? "" : await readJsonText(request, limits.bodyBytesMax);
  try {
    return await route.handle({
      context: { caller, signal },
      abort,
      uid: context.req.param("uid") ?? "",
      query,
      // HEAD is answered like GET without its body, and nobody would read the events of a stream.
      headers: request.method === "HEAD" ? new Headers() : request.headers,
      text,
    });
  } catch (thrown) {
    if (drain.aborted) throw new HoldfastError("unavailable", "the server is shutting down; retry later", { cause: thrown });
    throw faultOf(thrown, signal);
  }
}

function failed(error: unknown, context: Context, log: Log): Response {
  const fault = faultOf(error, context.req.raw.signal);
  if (fault.code === "internal") {
    const cause = fault.cause instanceof Error ? fault.cause.name : fault.name;
    log.log("error", "a REST call failed", { method: context.req.method, code: fault.code, fault: cause });
  }
  return problemResponse(fault);
}

function refuseMethod(routes: readonly Route[]): Response {
  const allow = routes.map((route) => route.method).join(", ");
  return problemResponse(new HttpRefusal(405, "unimplemented", `method: must be ${allow} on this path`, { headers: { allow } }));
}

function honoPath(path: string): string {
  return path.replace(/\{(\w+)\}/g, ":$1");
}
