/** A descriptor that is asked for once and kept. One that could not be had is asked for again by the next call. */

import { HoldfastError } from "../base/errors.ts";
import type { CallOptions, HarnessDescriptor } from "../spi/index.ts";

/** Keeps a descriptor for everybody who asks. */
export class Described {
  readonly #ask: () => Promise<HarnessDescriptor>;
  #descriptor: Promise<HarnessDescriptor> | undefined;

  constructor(ask: () => Promise<HarnessDescriptor>) {
    this.#ask = ask;
  }

  /** The descriptor. A caller that gives up leaves the question standing for the others. */
  get(options?: CallOptions): Promise<HarnessDescriptor> {
    return untilAborted(this.#descriptor ?? this.#asked(), options);
  }

  /** Forgets it: the next call asks again. */
  forget(): void {
    this.#descriptor = undefined;
  }

  #asked(): Promise<HarnessDescriptor> {
    const asked = this.#ask();
    this.#descriptor = asked;
    asked.catch(() => {
      if (this.#descriptor === asked) this.#descriptor = undefined;
    });
    return asked;
  }
}

async function untilAborted<T>(shared: Promise<T>, { signal }: CallOptions = {}): Promise<T> {
  if (signal === undefined) return shared;
  signal.throwIfAborted();
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(reasonOf(signal));
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([shared, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new HoldfastError("cancelled", "the caller gave up");
}
