/** The messages of a client's stream as bytes. */

import type { ServerReadableStream } from "@grpc/grpc-js";

/**
 * The messages as they come, each when it is asked for. Ends with the signal's reason when that fires: a sender that went away ends its stream
 * like any other. Whoever is done with them must drain the call.
 */
export async function* arrivingMessages(
  call: Pick<ServerReadableStream<Uint8Array, unknown>, "iterator">,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const messages = call.iterator({ destroyOnReturn: false });
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => undefined);
  const onAbort = (): void => gone.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const next: IteratorResult<Uint8Array, unknown> = await Promise.race([messages.next(), gone.promise]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Only a stream that nobody iterates any more can be drained.
    messages.return?.().catch(() => undefined);
  }
}
