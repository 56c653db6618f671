/**
 * Server-sent events: a live stream of a session over plain HTTP.
 *
 * Invariants:
 * - `id:` is the seq of a record and stands on records only, so a client's `Last-Event-ID` is always a seq it has seen.
 * - An event is taken from the service only when the reader asked for one: a slow client slows its stream, and nobody else's.
 * - A stream that began ends with `event: end` or with `event: error`; one that just stops was cut, and can be picked up.
 */

import type { Log } from "../../base/ports.ts";
import type { StreamItem } from "../../service/contract.ts";
import { reported } from "../fault.ts";
import { deltaJson, recordJson, sessionJson } from "./json.ts";
import { problemOf } from "./problem.ts";

/** The media type of an event stream. */
export const SSE_TYPE = "text/event-stream";

/** What a stream needs beside its items. */
export interface SseOptions {
  /** What the call is named in the log. */
  readonly operation: string;
  /** The call's signal: fires when the client goes away or the server closes. */
  readonly signal: AbortSignal;
  /** Called when the client goes away. */
  readonly onGone: () => void;
  readonly heartbeatMs: number;
  readonly log: Log;
}

const HEADERS = { "content-type": SSE_TYPE, "x-accel-buffering": "no" };
const ENCODER = new TextEncoder();
const HEARTBEAT = ENCODER.encode(": keep-alive\n\n");

/** The response that streams `items`, of which `first` was taken already. */
export function sseResponse(
  first: IteratorResult<StreamItem, void>,
  items: AsyncGenerator<StreamItem, void, undefined>,
  options: SseOptions,
): Response {
  const { signal, heartbeatMs } = options;
  let gone = false;
  let taken: IteratorResult<StreamItem, void> | undefined = first;
  let lastSeq = 0;
  let heartbeat: NodeJS.Timeout | undefined;
  const finish = (controller: ReadableStreamDefaultController<Uint8Array>, last: Uint8Array): void => {
    clearInterval(heartbeat);
    controller.enqueue(last);
    controller.close();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      heartbeat = setInterval(() => {
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(HEARTBEAT);
      }, heartbeatMs);
      heartbeat.unref();
    },
    async pull(controller) {
      try {
        const next = taken ?? (await items.next());
        taken = undefined;
        if (gone) return;
        if (next.done !== true) {
          if (next.value.kind === "record") lastSeq = next.value.record.seq;
          return controller.enqueue(eventOf(next.value));
        }
        signal.throwIfAborted();
        return finish(controller, frame("end", JSON.stringify({ last_seq: String(lastSeq) })));
      } catch (thrown) {
        if (!gone) finish(controller, errorEvent(thrown, options));
      }
    },
    cancel() {
      clearInterval(heartbeat);
      gone = true;
      options.onGone();
      // The abort lets a pending read settle; what it throws then is of no interest to anybody.
      items.return().catch(() => undefined);
    },
  });
  return new Response(body, { headers: HEADERS });
}

function eventOf(item: StreamItem): Uint8Array {
  switch (item.kind) {
    case "session":
      return frame("session", JSON.stringify(sessionJson(item.session)));
    case "record":
      return frame("record", JSON.stringify(recordJson(item.record)), item.record.seq);
    case "delta":
      return frame("delta", JSON.stringify(deltaJson(item.delta)));
  }
}

function errorEvent(thrown: unknown, { operation, log }: SseOptions): Uint8Array {
  return frame("error", JSON.stringify(problemOf(reported(thrown, operation, log))));
}

/** One event. The data is JSON and so has no line break of its own. */
function frame(event: string, data: string, id?: number): Uint8Array {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  return ENCODER.encode(`event: ${event}\n${idLine}data: ${data}\n\n`);
}
