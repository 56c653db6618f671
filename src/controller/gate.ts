/** The gate of a turn: open while the harness may act, shut for good once the turn is ending. */

import { HoldfastError } from "../base/errors.ts";

/** Lets a turn's effects through, or none of them. */
export class Gate {
  readonly #abort = new AbortController();
  #reason: HoldfastError | undefined;

  /** Fires when the gate shuts; its reason is the HoldfastError that every later effect gets. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Throws the reason once the gate is shut. */
  pass(): void {
    if (this.#reason !== undefined) throw this.#reason;
  }

  /** Shuts the gate. The first reason stays. */
  shut(reason: HoldfastError): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    this.#abort.abort(reason);
  }
}

const TURN_OVER = new HoldfastError("failed_precondition", "turn: it has ended; a harness may act only while its run lasts");

/** What effects get after their turn has ended. Every turn ends, and its stack would tell nothing: so there is one for all. */
export function turnOverError(): HoldfastError {
  return TURN_OVER;
}
