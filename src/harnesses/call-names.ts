/** Names for the calls of one turn: the host wants an id that no other call of the turn has, and a model may give two calls one id, or none. */

/** Hands out names; the same ids in the same order get the same names. */
export class CallNames {
  readonly #taken: Set<string>;

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken);
  }

  /** Another one that goes on from here. */
  copy(): CallNames {
    return new CallNames(this.#taken);
  }

  /** The id itself where it is free; otherwise the id with a number. */
  nameOf(id: string): string {
    let name = id === "" ? "call" : id;
    for (let count = 2; this.#taken.has(name); count += 1) name = `${id === "" ? "call" : id}~${count}`;
    this.#taken.add(name);
    return name;
  }
}
