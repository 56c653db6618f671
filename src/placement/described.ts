/** A descriptor that is asked for once and kept. One that could not be had is asked for again by the next call. */

import { untilAborted } from "../base/until-aborted.ts";
import type { CallOptions, HarnessDescriptor } from "../spi/index.ts";

/** Keeps a descriptor for everybody who asks. */
export class Described {
  readonly #ask: () => Promise<HarnessDescriptor>;
  #descriptor: Promise<HarnessDescriptor> | undefined;

  constructor(ask: () => Promise<HarnessDescriptor>) {
    this.#ask = ask;
  }

  /** The descriptor. A caller that gives up leaves the question standing for the others. */
  async get({ signal }: CallOptions = {}): Promise<HarnessDescriptor> {
    signal?.throwIfAborted();
    return untilAborted(this.#descriptor ?? this.#asked(), signal);
  }

  /** Keeps what was told meanwhile. */
  keep(descriptor: HarnessDescriptor): void {
    this.#descriptor = Promise.resolve(descriptor);
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
