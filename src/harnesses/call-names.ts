/**
 * Names for the calls of one session. The host wants an id that no other call of the turn has, and a client that runs tools tells calls by
 * their ids for as long as the session goes on; a model may give two calls one id, in one turn or in two, or none.
 *
 * Invariant: the same ids in the same order get the same names, wherever the fold that names them began.
 */

/** How often an id was named, by the id. A name that was handed out counts as an id of its own. */
type Named = ReadonlyMap<string, number>;

/** Hands out names. */
export class CallNames {
  /** What was named before the last copy, the newest last. It is shared with copies and does not change. */
  #before: readonly Named[];
  #since = new Map<string, number>();

  constructor(before: readonly Named[] = []) {
    this.#before = before;
  }

  /** Another one that goes on from here. It costs what is new, however many names there are. */
  copy(): CallNames {
    if (this.#since.size > 0) this.#before = joined([...this.#before, this.#since]);
    this.#since = new Map();
    return new CallNames(this.#before);
  }

  /** The id itself where it is free; otherwise the id with a number. */
  nameOf(id: string): string {
    const base = id === "" ? "call" : id;
    let count = this.#countOf(base) + 1;
    while (this.#countOf(nameAt(base, count)) > 0) count += 1;
    const name = nameAt(base, count);
    this.#since.set(name, 1);
    this.#since.set(base, count);
    return name;
  }

  #countOf(id: string): number {
    return this.#since.get(id) ?? this.#before.findLast((named) => named.has(id))?.get(id) ?? 0;
  }
}

function nameAt(base: string, count: number): string {
  return count === 1 ? base : `${base}~${count}`;
}

/** The same in few parts, each larger than those behind it: each name is moved as often as the number of parts says. */
function joined(parts: readonly Named[]): readonly Named[] {
  const kept = [...parts];
  for (let last = kept.pop(); last !== undefined; last = kept.pop()) {
    const larger = kept.at(-1);
    if (larger === undefined || larger.size > 2 * last.size) return [...kept, last];
    kept[kept.length - 1] = new Map([...larger, ...last]);
  }
  return [];
}
