/** Waiting for what may never come, as long as a turn runs. */

import type { Gate } from "./gate.ts";

/** Lets go of everything that is waited for once the gate shuts: nobody waits for a tool then. */
export class WhileOpen {
  readonly #gate: Gate;
  /** One listener stands for all that wait: signals take listeners badly in numbers. */
  readonly #waiting = new Set<(reason: unknown) => void>();
  #listens = false;

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  /** What `work` comes to, or the gate's reason once it is shut. */
  run<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#gate;
    if (signal.aborted) return Promise.reject(signal.reason);
    if (!this.#listens) signal.addEventListener("abort", () => this.#letGo(signal.reason), { once: true });
    this.#listens = true;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.add(reject);
      const done = (): void => void this.#waiting.delete(reject);
      work.then(resolve, reject).then(done, done);
    });
  }

  #letGo(reason: unknown): void {
    for (const reject of this.#waiting) reject(reason);
    this.#waiting.clear();
  }
}
