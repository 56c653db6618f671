/**
 * The tool calls of one turn that are under way.
 *
 * Invariants:
 * - A call of which its executor cannot say now what becomes of it keeps no other from its result: its turn is interrupted once nothing
 *   else of it acts.
 * - A result that has come is on its way to the journal before that.
 */

import type { HoldfastError } from "../base/errors.ts";
import { InterruptedCallError } from "../spi/index.ts";
import type { WhileOpen } from "./while-open.ts";

/** Keeps account of what is under way. */
export class RunningCalls {
  readonly #works = new Set<Promise<unknown>>();
  readonly #open: WhileOpen;
  readonly #interrupt: (fault: HoldfastError) => void;
  /** Groups whose intents are on their way to the journal. */
  #beginning = 0;
  /** Calls whose tool was asked and whose result is not issued, stalled ones included. */
  #acting = 0;
  #stalled = 0;
  #fault: HoldfastError | undefined;

  /** `interrupt` ends the turn without END. */
  constructor(open: WhileOpen, interrupt: (fault: HoldfastError) => void) {
    this.#open = open;
    this.#interrupt = interrupt;
  }

  /** Whether anything is. */
  get any(): boolean {
    return this.#works.size > 0 || this.#beginning > 0;
  }

  /** Resolves once none of what was tracked is under way. */
  async settled(): Promise<void> {
    while (this.#works.size > 0) await Promise.allSettled(this.#works);
  }

  /** Resolves once what is under way just now has settled. */
  async pass(): Promise<void> {
    await Promise.allSettled(this.#works);
  }

  /** Keeps account of `work` until it has settled. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#works.add(work);
    const done = (): void => void this.#works.delete(work);
    work.then(done, done);
    return work;
  }

  /** Begins a group. */
  async begin(group: () => Promise<void>): Promise<void> {
    this.#beginning += 1;
    try {
      await group();
    } finally {
      this.#beginning -= 1;
      this.#look();
    }
  }

  /** Waits for what a call's tool comes to, as long as the turn runs, and has it recorded. */
  async act<T>(executed: Promise<T>, record: (result: T) => Promise<void>): Promise<void> {
    this.#acting += 1;
    try {
      await record(await this.#open.run(executed.catch((error: unknown) => this.#stall(error))));
    } finally {
      this.#acting -= 1;
      this.#look();
    }
  }

  /** Waits until the turn is over where the call is interrupted. */
  #stall(error: unknown): Promise<never> {
    if (!(error instanceof InterruptedCallError)) throw error;
    this.#fault ??= error.fault;
    this.#stalled += 1;
    this.#look();
    return new Promise<never>(() => undefined);
  }

  #look(): void {
    if (this.#fault !== undefined && this.#stalled === this.#acting && this.#beginning === 0) this.#interrupt(this.#fault);
  }
}
