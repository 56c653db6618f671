/** Lets tasks of one key pass one after the other, in the order in which they came; tasks of different keys do not meet. */
export class Turnstile<Key> {
  readonly #last = new Map<Key, Promise<unknown>>();

  /** Runs `task` once those before it of the same key have settled; settles as it does. */
  async pass<T>(key: Key, task: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const passed = before.then(task, task);
    this.#last.set(key, passed);
    try {
      return await passed;
    } finally {
      if (this.#last.get(key) === passed) this.#last.delete(key);
    }
  }
}
