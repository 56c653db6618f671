/**
 * The timers that a guest set and that have not fired, by the host's clock.
 *
 * Invariant: a timer fires once. One that waits at a capture waits again after a restore, until the same time of day.
 */

import type { Clock, Timer } from "../../base/index.ts";

/** A timer that waits, as a snapshot keeps it. */
export interface WaitingTimer {
  readonly id: number;
  /** When it is due, by the host's wall clock. */
  readonly dueMs: number;
  /** The time that the guest then sees. */
  readonly guestDueMs: number;
}

/** Less is rounded up to it, so that a guest cannot call the host more often. */
const SHORTEST_MS = 1;

/** Timers of one VM. */
export class GuestTimers {
  readonly #clock: Clock;
  readonly #onDue: (timer: WaitingTimer) => void;
  readonly #waiting = new Map<number, { readonly facts: WaitingTimer; timer: Timer | undefined }>();
  #isPaused = false;

  constructor(clock: Clock, onDue: (timer: WaitingTimer) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** What a snapshot keeps, in the order of their ids. */
  facts(): WaitingTimer[] {
    return [...this.#waiting.values()].map(({ facts }) => facts).sort((left, right) => left.id - right.id);
  }

  set(id: number, afterMs: number, guestNowMs: number): void {
    const delayMs = Math.max(SHORTEST_MS, afterMs);
    this.add({ id, dueMs: this.#clock.nowMs() + delayMs, guestDueMs: guestNowMs + delayMs });
  }

  add(facts: WaitingTimer): void {
    this.clear(facts.id);
    const waiting = { facts, timer: undefined };
    this.#waiting.set(facts.id, waiting);
    if (!this.#isPaused) this.#arm(waiting);
  }

  clear(id: number): void {
    this.#waiting.get(id)?.timer?.cancel();
    this.#waiting.delete(id);
  }

  pause(): void {
    this.#isPaused = true;
    for (const waiting of this.#waiting.values()) waiting.timer?.cancel();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    for (const waiting of this.#waiting.values()) this.#arm(waiting);
  }

  clearAll(): void {
    for (const id of this.#waiting.keys()) this.clear(id);
  }

  #arm(waiting: { readonly facts: WaitingTimer; timer: Timer | undefined }): void {
    const { facts } = waiting;
    waiting.timer = this.#clock.after(Math.max(0, facts.dueMs - this.#clock.nowMs()), () => {
      this.#waiting.delete(facts.id);
      this.#onDue(facts);
    });
  }
}
