/** Requests whose answers have a limit: a body without events as a whole, a stream of events each of its events. */

import { MESSAGE_BYTES_MAX } from "./options.ts";

/** `fetch`, with bodies that fail where a server sends more at once than `bytesMax`. */
export function boundedFetch(bytesMax: number = MESSAGE_BYTES_MAX): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!response.ok || response.body === null) return response;
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(boundOf(bytesMax)), { status, statusText, headers });
  };
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Passes bytes on, and counts them from one empty line to the next, which is where an event ends. */
function boundOf(bytesMax: number): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let count = 0;
  let isLineEmpty = true;
  return new TransformStream({
    transform(chunk, controller) {
      for (const byte of chunk) {
        count += 1;
        if (count > bytesMax) return controller.error(new Error(`a message of more than ${bytesMax} bytes`));
        if (byte === LINE_FEED && isLineEmpty) count = 0;
        if (byte !== CARRIAGE_RETURN) isLineEmpty = byte === LINE_FEED;
      }
      controller.enqueue(chunk);
    },
  });
}
