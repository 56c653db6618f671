/**
 * Server-sent events: a stream of a session over plain HTTP.
 *
 * Invariants:
 * - `id:` is the seq of a record and stands on records only, so a client's `Last-Event-ID` is always a seq it has seen.
 * - An event is taken from the service only when the reader asked for one: a slow client slows its stream, and nobody else's. A
 *   fast one does not keep the event loop to itself.
 * - A stream that began ends with `event: end` or with `event: error`; one that just stops was cut, and can be picked up.
 */

import type { JsonValue } from "@bufbuild/protobuf";
import type { Log } from "../../base/ports.ts";
import { reported } from "../fault.ts";
import { Pace } from "../pace.ts";
import { problemOf } from "./problem.ts";

/** The media type of an event stream. */
export const SSE_TYPE = "text/event-stream";

/** One event of a stream. */
export interface SseEvent {
  readonly event: string;
  readonly data: JsonValue;
  /** The seq of a record; absent for everything else. */
  readonly id?: number | undefined;
}

/** What a stream needs beside its items. */
export interface SseOptions<Item> {
  readonly encode: (item: Item) => SseEvent;
  /** The data of the last event, `end`. */
  readonly endData: () => JsonValue;
  /** What the call is named in the log. */
  readonly operation: string;
  /** The call's signal: fires when the client goes away or the server closes. */
  readonly signal: AbortSignal;
  /** Called when the client goes away. */
  readonly onGone: () => void;
  readonly heartbeatMs: number;
  readonly log: Log;
}

/** Whether a request asks for events instead of a JSON document. */
export function wantsEvents(headers: Headers): boolean {
  return (headers.get("accept") ?? "").toLowerCase().includes(SSE_TYPE);
}

const HEADERS = { "content-type": SSE_TYPE, "x-accel-buffering": "no" };
const ENCODER = new TextEncoder();
const HEARTBEAT = ENCODER.encode(": keep-alive\n\n");

/** The response that streams `items`, of which `first` was taken already. */
export function sseResponse<Item>(
  first: IteratorResult<Item, void>,
  items: AsyncGenerator<Item, void, undefined>,
  options: SseOptions<Item>,
): Response {
  const { signal, heartbeatMs } = options;
  let gone = false;
  let taken: IteratorResult<Item, void> | undefined = first;
  let heartbeat: NodeJS.Timeout | undefined;
  const pace = new Pace();
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
          const event = frame(options.encode(next.value));
          controller.enqueue(event);
          // Before it is settled the next is not asked for.
          return await pace.made(event.length);
        }
        signal.throwIfAborted();
        return finish(controller, frame({ event: "end", data: options.endData() }));
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

function errorEvent(thrown: unknown, { operation, log }: { readonly operation: string; readonly log: Log }): Uint8Array {
  return frame({ event: "error", data: { ...problemOf(reported(thrown, operation, log)) } });
}

/** One event as bytes. The data is JSON and so has no line break of its own. */
function frame({ event, data, id }: SseEvent): Uint8Array {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  return ENCODER.encode(`event: ${event}\n${idLine}data: ${JSON.stringify(data)}\n\n`);
}
