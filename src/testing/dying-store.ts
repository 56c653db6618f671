/** A store for one host that dies at a chosen append: what came before is kept, nothing after it happens. */

import { HoldfastError } from "../base/index.ts";
import type { AppendOutcome, AppendRequest, JournalStore, StoreCallOptions } from "../journal/index.ts";

/** Where the host dies, counted in appends from 1. */
export interface Death {
  readonly atAppend: number;
  /** `before`: the append never reaches the store. `after`: it is durable, but the host never learns of it. */
  readonly when: "before" | "after";
}

/** A view of `journal` that fails for good at `death`. Reads go on: a dead host's readers are not what is tested. */
export class DyingStore {
  readonly #journal: JournalStore;
  readonly #death: Death;
  #appends = 0;
  #dead = false;

  constructor(journal: JournalStore, death: Death) {
    this.#journal = journal;
    this.#death = death;
  }

  /** Whether the death came. */
  get dead(): boolean {
    return this.#dead;
  }

  /** The store as the host sees it. */
  view(): JournalStore {
    const journal = this.#journal;
    return {
      name: journal.name,
      append: (request, options) => this.#append(request, options),
      renew: async () => this.#refuseWhenDead() ?? [],
      create: (seed, options) => journal.create(seed, options),
      get: (session, options) => journal.get(session, options),
      list: (request) => journal.list(request),
      read: (request) => journal.read(request),
      readAsides: (request) => journal.readAsides(request),
      receipts: (session, query) => journal.receipts(session, query),
      fork: (request, options) => journal.fork(request, options),
      reclaim: (session, options) => journal.reclaim(session, options),
      adopt: (request, options) => journal.adopt(request, options),
      complete: (sessions, options) => journal.complete(sessions, options),
      watch: (session, listener) => journal.watch(session, listener),
      ready: (options) => journal.ready(options),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }

  async #append(request: AppendRequest, options: StoreCallOptions | undefined): Promise<AppendOutcome> {
    this.#refuseWhenDead();
    this.#appends += 1;
    const last = this.#appends === this.#death.atAppend;
    if (last && this.#death.when === "before") this.#dead = true;
    this.#refuseWhenDead();
    const outcome = this.#journal.append(request, options);
    if (last) this.#dead = true;
    await outcome;
    this.#refuseWhenDead();
    return outcome;
  }

  #refuseWhenDead(): undefined {
    if (this.#dead) throw new HoldfastError("unavailable", "journal: this host is dead");
    return undefined;
  }
}
