/** Things that take their time and are let through in the order in which they were begun. */

import type { Seq } from "../base/ids.ts";
import type { Ports } from "../base/ports.ts";
import type { Tape } from "./tape.ts";

/** A place in the order. */
export interface Place {
  /** Resolves once everything with an earlier place is through. */
  readonly turn: Promise<void>;
  /** Lets the next one through, whatever came of this one. */
  readonly pass: () => void;
}

/** One after the other. */
export class InOrder {
  #last: Promise<void> = Promise.resolve();

  /** The next place. Whoever takes it must pass. */
  place(): Place {
    const turn = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    return { turn, pass: resolve };
  }
}

/**
 * How long a recorded result waits for the calls that were asked before it. A harness that asks for them does so at once; one that does
 * not is going to diverge, and is let go on to do so.
 */
const SERVE_PATIENCE_MS = 1_000;

/** Resolves once everything that is recorded before `seq` was asked for, or patience is over. */
export async function atPlace(seq: Seq, { tape, ports }: { readonly tape: Tape; readonly ports: Pick<Ports, "clock"> }): Promise<void> {
  const patience = Promise.withResolvers<void>();
  const timer = ports.clock.after(SERVE_PATIENCE_MS, () => patience.resolve());
  await Promise.race([tape.reached(seq), patience.promise]);
  timer.cancel();
}
