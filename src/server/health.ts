/** The health of this process, as every front door tells it. */

import { HoldfastError } from "../base/index.ts";
import type { Health, ServingState } from "../gateway/contract.ts";
import type { JournalStore } from "../journal/index.ts";

export class HostHealth implements Health {
  readonly #journal: JournalStore;
  readonly #listeners = new Set<(state: ServingState) => void>();
  readonly #closing = new AbortController();
  #state: ServingState = "starting";

  constructor(journal: JournalStore) {
    this.#journal = journal;
  }

  get state(): ServingState {
    return this.#state;
  }

  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  watch(listener: (state: ServingState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async ready(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    if (this.#state !== "serving") throw new HoldfastError("unavailable", `server: it is ${this.#state}; ask again later`);
    try {
      await this.#journal.ready(options);
    } catch (error) {
      throw new HoldfastError("unavailable", "server: its journal does not answer; ask again later", { cause: error });
    }
  }

  become(state: ServingState): void {
    if (state === this.#state) return;
    this.#state = state;
    for (const listener of this.#listeners) listener(state);
  }

  /** Tells every open stream to end. */
  close(): void {
    this.#closing.abort(new HoldfastError("unavailable", "server: it is shutting down; go on with the next one, from where you are"));
  }
}
