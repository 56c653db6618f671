/**
 * The timers that a guest set and that have not fired, by the host's clock.
 *
 * Invariants:
 * - A timer fires once. One that waits at a capture waits again after a restore, until the same time of day.
 * - Asleep, nothing is due: what falls due meanwhile is due as soon as they are awake again.
 * - Timers are due together at most once in `APART_MS`, so a guest cannot call the host more often, however many it sets.
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

/** Less is rounded up to it, as platforms do for timers that set timers. */
const SHORTEST_MS = 4;

/** Between two times at which timers are due. */
const APART_MS = 4;

/** Timers of one VM. They begin asleep. */
export class GuestTimers {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  readonly #waiting = new Map<number, WaitingTimer>();
  #isAwake = false;
  #lastTakenMs = Number.NEGATIVE_INFINITY;
  #alarm: { readonly atMs: number; readonly timer: Timer } | undefined;

  /** `onDue` is called when some may be due; `takeDue` then tells which. */
  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** What a snapshot keeps, in the order of their ids. */
  facts(): WaitingTimer[] {
    return [...this.#waiting.values()].sort((left, right) => left.id - right.id);
  }

  /** Sets one; `guestNowMs` is the time that the guest sees as it sets it. */
  set(id: number, afterMs: number, guestNowMs: number): void {
    const delayMs = Math.max(SHORTEST_MS, afterMs);
    this.add({ id, dueMs: this.#clock.nowMs() + delayMs, guestDueMs: guestNowMs + delayMs });
  }

  add(facts: WaitingTimer): void {
    this.#waiting.set(facts.id, facts);
    this.#wakeBy(facts.dueMs);
  }

  clear(id: number): void {
    this.#waiting.delete(id);
  }

  wake(): void {
    this.#isAwake = true;
    this.#arm();
  }

  sleep(): void {
    this.#isAwake = false;
    this.#disarm();
  }

  clearAll(): void {
    this.#waiting.clear();
    this.#disarm();
  }

  /** Those that are due now, in the order in which they fall due; they do not wait any more. Asleep: none. */
  takeDue(): WaitingTimer[] {
    if (!this.#isAwake) return [];
    const nowMs = this.#clock.nowMs();
    const due = [...this.#waiting.values()].filter(({ dueMs }) => dueMs <= nowMs);
    for (const { id } of due) this.#waiting.delete(id);
    if (due.length > 0) this.#lastTakenMs = nowMs;
    this.#arm();
    return due.sort((left, right) => left.guestDueMs - right.guestDueMs || left.id - right.id);
  }

  #arm(): void {
    this.#disarm();
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const { dueMs } of this.#waiting.values()) earliestMs = Math.min(earliestMs, dueMs);
    if (earliestMs < Number.POSITIVE_INFINITY) this.#wakeBy(earliestMs);
  }

  #wakeBy(dueMs: number): void {
    if (!this.#isAwake) return;
    const nowMs = this.#clock.nowMs();
    // A wall clock that was set back does not hold anything up.
    const earliestMs = Math.min(this.#lastTakenMs, nowMs) + APART_MS;
    const atMs = Math.max(dueMs, earliestMs, nowMs);
    if (this.#alarm !== undefined && this.#alarm.atMs <= atMs) return;
    this.#disarm();
    const timer = this.#clock.after(atMs - nowMs, () => {
      this.#alarm = undefined;
      this.#onDue();
    });
    this.#alarm = { atMs, timer };
  }

  #disarm(): void {
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
  }
}
