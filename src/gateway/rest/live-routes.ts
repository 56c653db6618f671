/** Turns and records: the routes that stream. */

import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../../base/errors.ts";
import type { Log } from "../../base/ports.ts";
import { LogRecordSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { DeltaSchema, ExecRequestSchema, ReplayRequestSchema, SessionSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { TailRequestSchema, TailRequest_Until } from "../../gen/holdfast/v1/journal_pb.ts";
import type { JournalService, SessionsService, StreamItem } from "../../service/contract.ts";
import { decodeJsonText } from "./decode.ts";
import { deltaJson, jsonResponse, recordJson, sessionJson } from "./json.ts";
import type { RestLimits } from "./limits.ts";
import { HttpRefusal } from "./problem.ts";
import { parametersOf, type QueryParameters, type QueryValues } from "./query.ts";
import { recordPage, RECORD_PAGE_SCHEMA } from "./record-page.ts";
import type { Answer, EventTable, RestCall, Route } from "./route.ts";
import { pathUid } from "./session-routes.ts";
import { sseResponse, SSE_TYPE, wantsEvents, type SseEvent } from "./sse.ts";

/** What the streaming routes call. */
export interface LiveDependencies {
  readonly sessions: SessionsService;
  readonly journal: JournalService;
  readonly limits: RestLimits;
  readonly log: Log;
}

const LIVE_EVENTS: EventTable = {
  data: { session: SessionSchema, record: LogRecordSchema, delta: DeltaSchema },
  end: { last_seq: { type: "string", format: "int64" } },
};

const EVENTS_EXEC: Answer = {
  kind: "events",
  events: LIVE_EVENTS,
  description: "`session` first, then `record` and `delta` as they come, `end` once the turn has ended or waits for an approval.",
};

/** The routes that stream, or may. */
export function liveRoutes(dependencies: LiveDependencies): readonly Route[] {
  return [execRoute(dependencies), execSessionRoute(dependencies), recordsRoute(dependencies)];
}

function execRoute(dependencies: LiveDependencies): Route {
  return {
    operationId: "exec",
    method: "POST",
    path: "/v1/exec",
    summary: "Run a turn, creating a session for it when none is named",
    description:
      "With `session` left out a session is created first; its uid is in the first event. A turn goes on when its client goes away.",
    query: {},
    body: ExecRequestSchema,
    endsItself: true,
    answers: [EVENTS_EXEC],
    async handle(call) {
      requireEvents(call.headers);
      const request = decodeJsonText(ExecRequestSchema, call.text);
      return stream("Exec", dependencies.sessions.exec(request, call.context), call, dependencies);
    },
  };
}

function execSessionRoute(dependencies: LiveDependencies): Route {
  return {
    operationId: "execSession",
    method: "POST",
    path: "/v1/sessions/{uid}/exec",
    summary: "Run the next turn of a session",
    description: "A turn goes on when its client goes away; the session's records pick it up. An empty body is a turn without input.",
    query: {},
    body: ExecRequestSchema,
    endsItself: true,
    answers: [EVENTS_EXEC],
    async handle(call) {
      requireEvents(call.headers);
      const request = decodeJsonText(ExecRequestSchema, call.text);
      request.session = pathUid(call.uid, request.session);
      return stream("Exec", dependencies.sessions.exec(request, call.context), call, dependencies);
    },
  };
}

const RANGE = parametersOf(ReplayRequestSchema, {
  from_seq: "The first seq; 0 and 1 both mean the first record.",
  to_seq: "The last seq; 0 means the head. JSON only.",
});
const PAGE_ONLY = ["to_seq", "limit"] as const;
const EVENTS_ONLY = ["until", "omit_deltas"] as const;

function recordsQuery(limits: RestLimits): QueryParameters {
  return {
    ...RANGE,
    limit: {
      type: "int32",
      description: `Records of a page: 0 is ${limits.pageRecordsDefault}, more than ${limits.pageRecordsMax} is ${limits.pageRecordsMax}. JSON only.`,
    },
    until: {
      type: ["head", "idle"],
      description:
        "When an event stream ends by itself: at the present head, or once no turn is running. Left out, it follows. Events only.",
    },
    omit_deltas: { type: "boolean", description: "Leave ephemeral deltas out. Events only." },
  };
}

function recordsRoute(dependencies: LiveDependencies): Route {
  return {
    operationId: "records",
    method: "GET",
    path: "/v1/sessions/{uid}/records",
    summary: "Read a session's records, a page at a time or live",
    description: "JSON by default. With `Accept: text/event-stream` it follows the session; `Last-Event-ID` resumes after that seq.",
    query: recordsQuery(dependencies.limits),
    headers: { "Last-Event-ID": "The seq after which an event stream resumes; it wins over `from_seq`." },
    answers: [
      { kind: "object", schema: RECORD_PAGE_SCHEMA, description: "A page of records; `next_seq` is there when the range goes on." },
      { kind: "events", events: LIVE_EVENTS, description: "`session` first, then `record` and `delta`; `end` only with `until`." },
    ],
    async handle(call) {
      if (!wantsEvents(call.headers)) {
        refuse(call.query, EVENTS_ONLY, `needs Accept: ${SSE_TYPE}`);
        return jsonResponse(await recordPage(call, dependencies.sessions, dependencies.limits));
      }
      refuse(call.query, PAGE_ONLY, "is for JSON pages; an event stream takes until instead");
      const request = create(TailRequestSchema, {
        session: call.uid,
        fromSeq: cursorOf(call),
        until: UNTIL[call.query.text("until")] ?? TailRequest_Until.UNSPECIFIED,
        omitDeltas: call.query.flag("omit_deltas"),
      });
      return stream("Tail", dependencies.journal.tail(request, call.context), call, dependencies);
    },
  };
}

const UNTIL: Readonly<Record<string, TailRequest_Until>> = { head: TailRequest_Until.HEAD, idle: TailRequest_Until.IDLE };

function refuse(query: QueryValues, names: readonly string[], why: string): void {
  const given = names.find((name) => query.has(name));
  if (given !== undefined) throw invalidArgument(given, why);
}

function cursorOf({ headers, query }: RestCall): bigint {
  const last = headers.get("last-event-id");
  if (last === null || last === "") return query.int64("from_seq") ?? 0n;
  if (!/^\d{1,16}$/.test(last)) throw invalidArgument("Last-Event-ID", "must be the seq of a record, as its event's id said");
  return BigInt(last) + 1n;
}

/**
 * Waits for the first item, so that what is wrong with the request is an HTTP status; what goes wrong later is an event.
 */
async function stream(
  operation: string,
  items: AsyncGenerator<StreamItem, void, undefined>,
  call: RestCall,
  dependencies: LiveDependencies,
): Promise<Response> {
  const first = await items.next();
  const { limits, log } = dependencies;
  const { onGone, context } = call;
  let lastSeq = 0;
  const encode = (item: StreamItem): SseEvent => {
    if (item.kind === "record") lastSeq = item.record.seq;
    // A cursor past the head gets no record: the head is then what the session says.
    else if (item.kind === "session") lastSeq = Math.max(lastSeq, Number(item.session.lastSeq));
    return eventOf(item);
  };
  const endData = () => ({ last_seq: String(lastSeq) });
  return sseResponse(first, items, { operation, signal: context.signal, onGone, heartbeatMs: limits.heartbeatMs, log, encode, endData });
}

function eventOf(item: StreamItem): SseEvent {
  switch (item.kind) {
    case "session":
      return { event: "session", data: sessionJson(item.session) };
    case "record":
      return { event: "record", data: recordJson(item.record), id: item.record.seq };
    case "delta":
      return { event: "delta", data: deltaJson(item.delta) };
  }
}

function requireEvents(headers: Headers): void {
  const accept = (headers.get("accept") ?? "*/*").toLowerCase();
  if (accept.includes(SSE_TYPE) || accept.includes("*/*") || accept.includes("text/*")) return;
  throw new HttpRefusal(406, "invalid_argument", `Accept: must allow ${SSE_TYPE}; a turn is answered as a stream`, { field: "Accept" });
}
