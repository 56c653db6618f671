/** The effects of an execution that were refused, so that a harness that gives up with one gives up with that very error. */

import { thrownErrorOfWire, type WireError } from "./status.ts";

/** How many refusals are remembered; a harness that gives up does so with one of the last. */
const REMEMBERED_MAX = 16;

/** Remembers refusals. */
export class RefusedEffects {
  readonly #last: { readonly wire: WireError; readonly error: unknown }[] = [];

  /** Notes that `error` was sent as `wire`. */
  add(wire: WireError, error: unknown): void {
    this.#last.push({ wire, error });
    if (this.#last.length > REMEMBERED_MAX) this.#last.shift();
  }

  /** What an execution that the harness ended with `end` failed with. */
  errorOf(end: WireError): unknown {
    const same = this.#last.findLast(({ wire }) => wire.code === end.code && wire.description === end.description);
    return same?.error ?? thrownErrorOfWire(end);
  }
}
