/**
 * A store as one host reaches it over a bad road: calls that never arrive, answers that are lost, and both late.
 *
 * Invariants:
 * - Writes of one host arrive in the order in which it asked, as every store promises its callers.
 * - What is lost is lost with UNAVAILABLE (or what the fate says): a host is never told anything that is not so.
 * - After its host's death nothing arrives and nothing is answered.
 */

import { HoldfastError, type ErrorCode } from "../../base/index.ts";
import type { JournalStore, ReadRequest, StoredRecord } from "../../journal/index.ts";
import type { HostLife } from "./host-life.ts";

/** What becomes of one call. */
export interface Fate {
  /** How long it takes to the store. */
  readonly delayMs: number;
  /** Whether it reaches the store at all. */
  readonly arrives: boolean;
  /** Whether the host learns the answer. */
  readonly isAnswered: boolean;
  readonly answerDelayMs: number;
  /** What the host is told where it learns no answer. */
  readonly code: ErrorCode;
}

/** A call that goes well. */
export const GOOD_FATE: Fate = { delayMs: 0, arrives: true, isAnswered: true, answerDelayMs: 0, code: "unavailable" };

/** Decides what becomes of calls. */
export interface Fates {
  write(kind: "append" | "create" | "fork" | "renew"): Fate;
  read(): Fate;
}

interface Waiting {
  readonly dueMs: number;
  readonly arrive: () => void;
}

/** One host's road to a store. */
export class JournalView {
  /** Calls that were lost on it so far. */
  faults = 0;
  readonly #journal: JournalStore;
  readonly #life: HostLife;
  readonly #fates: Fates;
  #waiting: Waiting[] = [];

  constructor(journal: JournalStore, life: HostLife, fates: Fates) {
    this.#journal = journal;
    this.#life = life;
    this.#fates = fates;
  }

  /** The store as the host has it. Disposing it leaves the store open. */
  store(): JournalStore {
    const journal = this.#journal;
    return {
      name: journal.name,
      append: (request, options) => this.#write("append", () => journal.append(request, options)),
      create: (seed, options) => this.#write("create", () => journal.create(seed, options)),
      fork: (request, options) => this.#write("fork", () => journal.fork(request, options)),
      reclaim: (session, options) => this.#write("append", () => journal.reclaim(session, options)),
      adopt: (request, options) => this.#write("append", () => journal.adopt(request, options)),
      complete: (sessions, options) => this.#write("append", () => journal.complete(sessions, options)),
      renew: (request) => this.#write("renew", () => journal.renew(request)),
      get: (session, options) => this.#read(() => journal.get(session, options)),
      list: (request) => this.#read(() => journal.list(request)),
      readAsides: (request) => this.#read(() => journal.readAsides(request)),
      receipts: (session, query) => this.#read(() => journal.receipts(session, query)),
      read: (request) => this.#pages(request),
      watch: (session, listener) =>
        journal.watch(session, (records) => {
          if (!this.#life.isDead) listener(records);
        }),
      ready: (options) => journal.ready(options),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }

  #write<T>(kind: Parameters<Fates["write"]>[0], call: () => Promise<T>): Promise<T> {
    if (this.#life.isDead) return this.#never();
    const fate = this.#fates.write(kind);
    const answer = this.#arrive(fate.delayMs, async () => (fate.arrives ? call() : this.#lost(fate)));
    return this.#answered(answer, fate);
  }

  async #read<T>(call: () => Promise<T>): Promise<T> {
    await this.#life.alive();
    const fate = this.#fates.read();
    await this.#pass(Math.max(fate.delayMs, this.#life.stalledMs));
    return this.#answered(fate.arrives ? call() : this.#lost(fate), fate);
  }

  async *#pages(request: ReadRequest): AsyncGenerator<readonly StoredRecord[], void, void> {
    for await (const page of this.#journal.read(request)) {
      yield await this.#read(async () => page);
    }
  }

  /** Runs `call` once the host's earlier writes have arrived and `delayMs` have passed. */
  #arrive<T>(delayMs: number, call: () => Promise<T>): Promise<T> {
    const spanMs = Math.max(delayMs, this.#life.stalledMs);
    if (spanMs === 0 && this.#waiting.length === 0) return call();
    const { clock } = this.#life;
    const dueMs = Math.max(clock.monotonicMs() + spanMs, this.#waiting.at(-1)?.dueMs ?? 0);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ dueMs, arrive: () => void call().then(resolve, reject) });
      if (this.#waiting.length === 1) this.#awaitFirst();
    });
  }

  #awaitFirst(): void {
    const { clock } = this.#life;
    const first = this.#waiting[0];
    if (first === undefined) return;
    clock.after(Math.max(0, first.dueMs - clock.monotonicMs()), () => {
      const nowMs = clock.monotonicMs();
      while (this.#waiting[0] !== undefined && this.#waiting[0].dueMs <= nowMs) this.#waiting.shift()?.arrive();
      this.#awaitFirst();
    });
  }

  async #answered<T>(call: Promise<T>, fate: Fate): Promise<T> {
    const answer = await this.#whileAlive(call);
    await this.#pass(Math.max(fate.answerDelayMs, this.#life.stalledMs));
    if (!fate.isAnswered) return this.#lost(fate);
    return answer;
  }

  /** The store's answer, be it a throw, as long as there is a host that hears it. */
  async #whileAlive<T>(call: Promise<T>): Promise<T> {
    try {
      return await call;
    } finally {
      await this.#life.alive();
    }
  }

  async #pass(ms: number): Promise<void> {
    if (ms > 0) await this.#life.clock.sleep(ms);
    await this.#life.alive();
  }

  async #never(): Promise<never> {
    return new Promise(() => undefined);
  }

  async #lost({ code }: Fate): Promise<never> {
    this.faults += 1;
    throw new HoldfastError(code, "journal: a simulated fault");
  }
}
