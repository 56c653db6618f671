/**
 * The messages of one stream on their way out.
 *
 * Invariant: what waits for a slow reader is bounded in bytes. grpc-js counts objects, sixteen of any size; here the source is
 * paused once `bytesMax` wait and goes on when half of that has gone.
 */

/** What a message costs while it waits, beside its own bytes. */
const ITEM_BYTES = 512;

/** A message on its way out. */
export class OutgoingMessage {
  readonly bytes: Uint8Array;
  /** Called once the message has left; never, when the call was cancelled before. */
  readonly onSent: () => void;

  constructor(bytes: Uint8Array, onSent: () => void) {
    this.bytes = bytes;
    this.onSent = onSent;
  }
}

/** Where messages go: grpc-js's writable streams. */
export interface MessageSink {
  write(message: OutgoingMessage): boolean;
}

export class Outbox {
  readonly #sink: MessageSink;
  readonly #bytesMax: number;
  #waitingBytes = 0;
  #wake: (() => void) | undefined;
  #closed = false;

  constructor(sink: MessageSink, bytesMax: number, signal: AbortSignal) {
    this.#sink = sink;
    this.#bytesMax = bytesMax;
    const close = (): void => {
      this.#closed = true;
      this.#wake?.();
    };
    if (signal.aborted) close();
    else signal.addEventListener("abort", close, { once: true });
  }

  /** Bytes that were handed over and have not left yet. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  /** Sends a message. Returns undefined when more may follow at once, else a promise of when it may (or of the stream's end). */
  send(message: Uint8Array): Promise<void> | undefined {
    if (this.#closed) return undefined;
    const bytes = message.length + ITEM_BYTES;
    this.#waitingBytes += bytes;
    const onSent = (): void => {
      this.#waitingBytes -= bytes;
      if (this.#waitingBytes <= this.#bytesMax / 2) this.#wake?.();
    };
    this.#sink.write(new OutgoingMessage(message, onSent));
    if (this.#waitingBytes < this.#bytesMax) return undefined;
    return new Promise<void>((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
      if (this.#closed) this.#wake();
    });
  }
}
