/**
 * The worker threads of a runtime, in two lanes. A guest cannot be paused in the middle of its code, only stopped for good; so whoever shares
 * a thread with one that computes waits for it, at most one slice. That must not happen twice: a session that computed for long in one
 * slice, or was stopped, is placed in the slow lane from then on, a thread for its like
 * that gives way to everybody else.
 */

import type { SessionUid } from "../../base/index.ts";
import type { WorkerLink } from "./worker-link.ts";

/** Which thread a VM is placed on. */
export type Lane = "quick" | "slow";

/** Sessions that are remembered for the slow lane. */
const SLOW_SESSIONS_MAX = 10_000;

/** Threads that are started when they are needed. */
export class WorkerPool {
  readonly #quick: (WorkerLink | undefined)[];
  #slow: WorkerLink | undefined;
  readonly #start: (name: string, lane: Lane) => WorkerLink;
  readonly #slowSessions = new Set<SessionUid>();

  /** `quickWorkers` threads in the quick lane, one in the slow lane. */
  constructor(quickWorkers: number, start: (name: string, lane: Lane) => WorkerLink) {
    this.#quick = Array.from({ length: quickWorkers });
    this.#start = start;
  }

  /** Where a session's VM belongs. */
  laneOf(session: SessionUid): Lane {
    return this.#slowSessions.has(session) ? "slow" : "quick";
  }

  /** Remembers that a session computes for long. */
  slowDown(session: SessionUid): void {
    this.#slowSessions.delete(session);
    this.#slowSessions.add(session);
    const [oldest] = this.#slowSessions;
    if (this.#slowSessions.size > SLOW_SESSIONS_MAX && oldest !== undefined) this.#slowSessions.delete(oldest);
  }

  /** The thread of a lane with the fewest VMs; it is started, where need be. */
  worker(lane: Lane): WorkerLink {
    if (lane === "slow") {
      if (this.#slow === undefined || this.#slow.isGone) this.#slow = this.#start("quickjs-slow", "slow");
      return this.#slow;
    }
    let best: WorkerLink | undefined;
    for (let index = 0; index < this.#quick.length; index++) {
      let link = this.#quick[index];
      if (link === undefined || link.isGone) {
        // One that holds nothing is as good as a new one.
        if (best !== undefined && best.lost.size === 0) continue;
        link = this.#start(`quickjs-${index + 1}`, "quick");
        this.#quick[index] = link;
      }
      if (best === undefined || link.lost.size < best.lost.size) best = link;
    }
    return best!;
  }

  async close(): Promise<void> {
    const links = [...this.#quick, this.#slow].filter((link) => link !== undefined);
    await Promise.all(links.map((link) => link.close()));
  }
}
