/**
 * Where in a message a walk is: the names on the way from the root, for the refusal that names the field, and the depth at
 * which the wire holds it.
 */

import { invalidArgument, type HoldfastError } from "../base/errors.ts";

/**
 * The most messages inside one another that readers of the wire accept; protobuf libraries stop at 100. What is recorded must
 * stay readable wherever the contract carries it.
 */
export const MESSAGE_DEPTH_MAX = 100;
/** The depth of an Event in the frames that carry it the deepest: a frame, the record or start in it, the event. */
export const EVENT_DEPTH = 3;

/** Object keys are the caller's content. In an error they appear only where they look like a field's name. */
const FIELD_LIKE = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** A place in a message. It is written out only when something there is refused. */
export class Path {
  readonly #parent: Path | undefined;
  readonly #name: string;
  readonly #index: number;
  readonly depth: number;

  private constructor(parent: Path | undefined, name: string, index: number, depth: number) {
    this.#parent = parent;
    this.#name = name;
    this.#index = index;
    this.depth = depth;
  }

  /** The root: what the caller calls the message, and how deep the wire holds it. `""` leaves the root out of paths. */
  static root(name: string, depth: number): Path {
    return new Path(undefined, name, -1, depth);
  }

  /** The message in a field, or in a list's entry. Refuses what is nested too deeply (a circle is, too). */
  child(name: string, index = -1): Path {
    const child = new Path(this, name, index, this.depth + 1);
    if (child.depth > MESSAGE_DEPTH_MAX) throw child.refusal("", `must not be nested deeper than ${MESSAGE_DEPTH_MAX} messages`);
    return child;
  }

  /** The value of a key that the caller chose. */
  key(key: string, position: number): Path {
    return FIELD_LIKE.test(key) ? this.child(key) : this.child("", position);
  }

  /** The INVALID_ARGUMENT for the field `name` here; `""` is the place itself. */
  refusal(name: string, message: string): HoldfastError {
    const place = this.#text();
    const field = name === "" ? place : place === "" ? name : `${place}.${name}`;
    return invalidArgument(field, message);
  }

  #text(): string {
    const parent = this.#parent === undefined ? "" : this.#parent.#text();
    const index = this.#index < 0 ? "" : `[${this.#index}]`;
    return parent === "" || this.#name === "" ? `${parent}${this.#name}${index}` : `${parent}.${this.#name}${index}`;
  }
}
