/** Ports for tests and simulation: time that moves when it is told to, randomness that repeats from a seed, real hashing. */

import { createHash, hash, type Hash } from "node:crypto";
import type { Clock, Digest, Ports, Random, RunningHash, Timer } from "../base/index.ts";

/** SHA-256 as Node has it. */
export const testDigest: Digest = {
  sha256Hex: (data) => hash("sha256", data),
  sha256: () => runningHash(createHash("sha256")),
};

function runningHash(under: Hash): RunningHash {
  return {
    update: (text) => void under.update(text),
    copy: () => runningHash(under.copy()),
    hex: () => under.digest("hex"),
  };
}

interface PendingTask {
  readonly dueMs: number;
  readonly order: number;
  readonly task: () => void;
}

/** A clock that stands still until `advance` moves it; timers that fall due run in order, each at its own time. */
export class VirtualClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #pending = new Set<PendingTask>();
  readonly #startMs: number;

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
    this.#startMs = startMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs - this.#startMs;
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#pending.size;
  }

  /** When the next timer is due; undefined when none waits. */
  get nextDueMs(): number | undefined {
    return this.#nextDue(Number.POSITIVE_INFINITY)?.dueMs;
  }

  after(ms: number, task: () => void): Timer {
    const pending: PendingTask = { dueMs: this.#nowMs + Math.max(0, ms), order: this.#order++, task };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  sleep(ms: number, options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason);
      const timer = this.after(ms, () => resolve());
      signal?.addEventListener(
        "abort",
        () => {
          timer.cancel();
          reject(signal.reason);
        },
        { once: true },
      );
    });
  }

  /** Moves time forward by `ms`, running what falls due on the way. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (let next = this.#nextDue(endMs); next !== undefined; next = this.#nextDue(endMs)) {
      this.#pending.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      next.task();
    }
    this.#nowMs = endMs;
  }

  #nextDue(endMs: number): PendingTask | undefined {
    let next: PendingTask | undefined;
    for (const task of this.#pending) {
      if (task.dueMs > endMs) continue;
      if (next === undefined || task.dueMs < next.dueMs || (task.dueMs === next.dueMs && task.order < next.order)) next = task;
    }
    return next;
  }
}

/** Randomness that repeats from its seed (splitmix32). Never for secrets. */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** The next whole number from 0 to 2^32−1. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return (mixed ^ (mixed >>> 15)) >>> 0;
  }

  /** A whole number from 0 to `bound` − 1. */
  below(bound: number): number {
    return Math.floor((this.next() / 2 ** 32) * bound);
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.next() & 0xff);
  }
}

/** Ports that repeat from a seed. */
export function seededPorts(seed = 1): Ports & { readonly clock: VirtualClock; readonly random: SeededRandom } {
  return { clock: new VirtualClock(), random: new SeededRandom(seed), digest: testDigest };
}
