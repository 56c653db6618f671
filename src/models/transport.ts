/**
 * The fetch that the vendors' clients are given. It shows the host every byte that arrives, which the clients do not: they
 * swallow the keep-alives of a stream, so from outside a provider that thinks for minutes looks dead.
 *
 * Invariants:
 * - A redirect is never followed: it would carry prompts, and with some providers the key, to another address.
 * - Of an error's body at most ERROR_BYTES_MAX are read; of an answer's at most the given limit.
 */

import type { Clock } from "../base/ports.ts";
import { malformed, ProviderFaultError } from "./fault.ts";

/** How much of an error's body is read for its error type. */
const ERROR_BYTES_MAX = 16 * 1024;

/** How long the end of an answer is waited for whose reader has what it needs. */
const END_MAX_MS = 20;

/** What a fetch is observed by. */
export interface FetchObserver {
  /** Called for every piece of an answer's body as it arrives. */
  readonly onBytes: () => void;
  /** Bytes of one answer at most. */
  readonly answerBytesMax: number;
  readonly clock: Pick<Clock, "after">;
}

/** The signature that both clients take as their `fetch`. */
export type FetchLike = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** A fetch for one attempt. */
export function observedFetch(observer: FetchObserver): FetchLike {
  return async (input, init) => {
    const response = await fetch(input, { ...init, redirect: "manual" });
    if (!response.ok) return await shortened(response);
    if (!isEventStream(response)) {
      await response.body?.cancel();
      throw new ProviderFaultError({ kind: "not-a-stream" });
    }
    if (response.body === null) malformed();
    return copyOf(response, metered(response.body, observer));
  };
}

/** A page or a JSON document is no stream. Other types pass: some servers call their streams plain text. */
function isEventStream(response: Response): boolean {
  const type = response.headers.get("content-type") ?? "";
  return !/^\s*(text\/html|application\/json|application\/xml|text\/xml)\b/i.test(type);
}

/** The body, observed. A stream that is pulled: a pipe through another one costs several times as much for each piece. */
function metered(body: ReadableStream<Uint8Array<ArrayBuffer>>, observer: FetchObserver): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  let bytes = 0;
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> => {
    const { done, value } = await reader.read();
    if (done) return controller.close();
    observer.onBytes();
    bytes += value.byteLength;
    if (bytes <= observer.answerBytesMax) return controller.enqueue(value);
    await reader.cancel(CUT_OFF);
    throw new ProviderFaultError({ kind: "too-large" });
  };
  return new ReadableStream(
    { pull, cancel: () => endOf(reader, { clock: observer.clock, bytesMax: observer.answerBytesMax - bytes }) },
    { highWaterMark: 0 },
  );
}

/**
 * Lets an answer end whose reader has left. Its last word is not its last byte, and a connection whose answer is cut off between the two is closed:
 * the next request would have to open another one. An answer whose request was aborted ends at once, and so does one of too many bytes.
 */
async function endOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { clock, bytesMax }: { readonly clock: Pick<Clock, "after">; readonly bytesMax: number },
): Promise<void> {
  const cutOff = (): Promise<void> => reader.cancel(CUT_OFF).catch(() => undefined);
  const timer = clock.after(END_MAX_MS, () => void cutOff());
  try {
    for (let bytes = 0; ;) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
      if (bytes > bytesMax) return await cutOff();
    }
  } catch {
    // It was aborted, or broke off: nobody waits for it any more.
  } finally {
    timer.cancel();
  }
}

/** One for all: making one takes longer than what it is for. */
const CUT_OFF = new DOMException("the reader has left", "AbortError");

async function shortened(response: Response): Promise<Response> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    const body: AsyncIterable<Uint8Array> | null = response.body;
    for await (const chunk of body ?? []) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
      if (bytes >= ERROR_BYTES_MAX) break;
    }
  } catch {
    // An error whose body breaks off is that error all the same; its status is known.
  }
  return copyOf(response, Buffer.concat(chunks).subarray(0, ERROR_BYTES_MAX).toString("utf8"));
}

// These statuses may have no body, and the Response constructor throws when it is given one.
const NULL_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

function copyOf(response: Response, body: ReadableStream<Uint8Array<ArrayBuffer>> | string): Response {
  const { status, statusText, headers } = response;
  return new Response(NULL_BODY.has(status) ? null : body, { status, statusText, headers });
}
