/** Assertions. A broken invariant is a bug in Holdfast: it stops the turn at once instead of recording what is wrong. */

import { HoldfastError } from "./errors.ts";

/** A broken invariant. `details` tells a developer which; a caller is told nothing but that it happened. */
export class InvariantError extends HoldfastError {
  override readonly name = "InvariantError";

  constructor(what: string) {
    super("internal", "an internal check failed; nothing further was done", { details: { invariant: what } });
  }
}

/** Throws an InvariantError unless `condition` holds. `what` states the invariant and must hold no payload. */
export function invariant(condition: unknown, what: string): asserts condition {
  if (!condition) throw new InvariantError(what);
}

/** The arm of an exhaustive switch that cannot be reached. */
export function unreachable(value: never): never {
  throw new InvariantError(`an unknown case was reached (${typeof value})`);
}
