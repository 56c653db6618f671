/**
 * Virtual clocks for code that waits and retries: one whose sleeps are over at once and written down, and the event of a clock
 * being read, by which a test learns that the code under test has noticed something.
 */

import { VirtualClock } from "./ports.ts";

/** A virtual clock that moves itself: a sleep takes its time from the clock, none from the test, and is kept. */
export class RecordingClock extends VirtualClock {
  /** The length of every sleep so far, in milliseconds. */
  readonly sleeps: number[] = [];

  override async sleep(ms: number, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    options.signal?.throwIfAborted();
    this.sleeps.push(ms);
    this.advance(ms);
  }
}

/** A virtual clock that says when it is read. */
export class WatchedClock extends VirtualClock {
  #read = Promise.withResolvers<void>();

  override monotonicMs(): number {
    this.#read.resolve();
    return super.monotonicMs();
  }

  /** Resolves at the next reading of the monotonic clock. */
  nextRead(): Promise<void> {
    this.#read = Promise.withResolvers<void>();
    return this.#read.promise;
  }
}
