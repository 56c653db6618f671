/** A lane: tasks run one at a time, in the order in which they were asked. */

/** Serialises asynchronous tasks. A task that fails does not hold up the next one. */
export class Lane {
  #tail: Promise<unknown> = Promise.resolve();
  #length = 0;

  /** Tasks that run or wait. */
  get length(): number {
    return this.#length;
  }

  /** Runs `task` after every task that was asked before it. */
  run<T>(task: () => Promise<T>): Promise<T> {
    this.#length += 1;
    const result = this.#length === 1 ? task() : this.#tail.then(task);
    const done = (): void => {
      this.#length -= 1;
    };
    this.#tail = result.then(done, done);
    return result;
  }
}
