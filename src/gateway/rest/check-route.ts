/** CheckReplay as a route: a JSON array that is written while the turns replay, or the same as events. */

import { create } from "@bufbuild/protobuf";
import { CheckReplayRequestSchema, TurnCheck_Outcome, TurnCheckSchema, type TurnCheck } from "../../gen/holdfast/v1/replay_pb.ts";
import { reported } from "../fault.ts";
import { Pace } from "../pace.ts";
import { messageJson } from "./json.ts";
import type { LiveDependencies } from "./live-routes.ts";
import { parametersOf } from "./query.ts";
import type { EventTable, RestCall, Route } from "./route.ts";
import { sseResponse, wantsEvents } from "./sse.ts";

const COUNT = { type: "integer", minimum: 0 };
const CHECK_EVENTS: EventTable = { data: { check: TurnCheckSchema }, end: { turns: COUNT, diverged: COUNT, refused: COUNT } };
const CHECKS_SCHEMA = { type: "array", items: { $ref: `#/components/schemas/${TurnCheckSchema.typeName}` } };

/** See `docs/rest.md`. */
export function checkRoute(dependencies: LiveDependencies): Route {
  return {
    operationId: "checkReplay",
    method: "GET",
    path: "/v1/sessions/{uid}/check",
    summary: "Replay a session's turns as a check",
    description:
      "Runs every ended turn again, served from its records, and says of each whether the harness did the same. Calls no model and no tool, " +
      "writes nothing. JSON by default; with `Accept: text/event-stream` a check is sent when it is there.",
    query: parametersOf(CheckReplayRequestSchema, {
      harness: "The harness that runs every turn; empty means the recorded one, whatever its version is now.",
    }),
    answers: [
      { kind: "object", schema: CHECKS_SCHEMA, messages: [TurnCheckSchema], description: "A TurnCheck for each ended turn, oldest first." },
      { kind: "events", events: CHECK_EVENTS, description: "`check` for each ended turn, oldest first; `end` with the counts." },
    ],
    async handle(call) {
      const request = create(CheckReplayRequestSchema, { session: call.uid, harness: call.query.text("harness") });
      const checks = dependencies.journal.checkReplay(request, call.context);
      const first = await checks.next();
      return wantsEvents(call.headers) ? events(first, checks, call, dependencies) : list(first, checks, call, dependencies);
    },
  };
}

type Checks = AsyncGenerator<TurnCheck, void, undefined>;

function events(first: IteratorResult<TurnCheck, void>, checks: Checks, call: RestCall, dependencies: LiveDependencies): Response {
  const counts = { turns: 0, diverged: 0, refused: 0 };
  const { limits, log } = dependencies;
  return sseResponse(first, checks, {
    operation: "CheckReplay",
    signal: call.context.signal,
    onGone: call.onGone,
    heartbeatMs: limits.heartbeatMs,
    log,
    encode: (check) => {
      counts.turns += 1;
      if (check.outcome === TurnCheck_Outcome.DIVERGED) counts.diverged += 1;
      if (check.outcome === TurnCheck_Outcome.REFUSED) counts.refused += 1;
      return { event: "check", data: messageJson(TurnCheckSchema, check) };
    },
    endData: () => counts,
  });
}

const ENCODER = new TextEncoder();

/** The array as it comes. What goes wrong after its beginning cuts the connection: half an array is no JSON and is not mistaken for all. */
function list(first: IteratorResult<TurnCheck, void>, checks: Checks, call: RestCall, { log }: LiveDependencies): Response {
  const pace = new Pace();
  let taken: IteratorResult<TurnCheck, void> | undefined = first;
  let opening = "[";
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = taken ?? (await checks.next());
        taken = undefined;
        if (next.done === true) {
          call.context.signal.throwIfAborted();
          controller.enqueue(ENCODER.encode(opening === "[" ? "[]" : "]"));
          controller.close();
          return;
        }
        const check = ENCODER.encode(`${opening}${JSON.stringify(messageJson(TurnCheckSchema, next.value))}`);
        controller.enqueue(check);
        opening = ",";
        await pace.made(check.length);
      } catch (error) {
        controller.error(reported(error, "CheckReplay", log));
      }
    },
    cancel() {
      call.onGone();
      // The abort lets a pending turn settle; what it throws then is of no interest to anybody.
      checks.return().catch(() => undefined);
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}
