/** The messages of a client's stream as bytes. */

import type { ServerReadableStream } from "@grpc/grpc-js";

/**
 * The messages as they come, each when it is asked for. Ends with the signal's reason when that fires: a sender that went away ends its stream
 * like any other. Whoever is done with them must drain the call. Nothing is kept of a message that was handed out.
 */
export async function* arrivingMessages(
  call: Pick<ServerReadableStream<Uint8Array, unknown>, "iterator">,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const messages = call.iterator({ destroyOnReturn: false });
  let giveUp: (reason: unknown) => void = () => undefined;
  const onAbort = (): void => giveUp(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      // No race with one promise for all messages: that would hold each of them until it settles, which is at the end of the stream.
      const next = await new Promise<IteratorResult<Uint8Array, unknown>>((resolve, reject) => {
        giveUp = reject;
        messages.next().then(resolve, reject);
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Only a stream that nobody iterates any more can be drained.
    messages.return?.().catch(() => undefined);
  }
}
