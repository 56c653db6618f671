/**
 * Sends events to one receiver, again and again until it takes them or their time is over.
 *
 * Invariants:
 * - Whoever hands an event over never waits.
 * - Everything is bounded: events in memory, sendings at once, the time of one, the number of all, the bytes that are read of an answer.
 * - An event is let go of once: taken by the receiver, or given up and logged. `floorMs` is never later than one that is still held.
 */

import type { Clock, Log, Random, Timer } from "../base/index.ts";
import { webhookHeaders, type WebhookMessage } from "./webhook-message.ts";

/** What bounds a sender. Times in milliseconds. */
export interface WebhookLimits {
  readonly heldMax: number;
  readonly atOnceMax: number;
  readonly timeoutMs: number;
  readonly attemptsMax: number;
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
}

export const WEBHOOK_LIMITS: WebhookLimits = {
  heldMax: 10_000,
  atOnceMax: 4,
  timeoutMs: 10_000,
  // With the backoff that is about a day and a half.
  attemptsMax: 40,
  backoffMinMs: 1_000,
  backoffMaxMs: 3_600_000,
};

/** Ids of events that were let go of and are remembered: several times what is held, so that looks through the journal get on. */
const SETTLED_MAX = 50_000;

/** What a sender needs. */
export interface WebhookSenderOptions {
  readonly url: string;
  readonly key: Uint8Array;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly limits?: Partial<WebhookLimits> | undefined;
}

interface Held {
  readonly message: WebhookMessage;
  attempts: number;
  /** Set while it waits for its next attempt. */
  timer: Timer | undefined;
}

/** The sender of one receiver. */
export class WebhookSender {
  readonly #options: WebhookSenderOptions;
  readonly #limits: WebhookLimits;
  readonly #held = new Map<string, Held>();
  readonly #ready: Held[] = [];
  readonly #sending = new Set<Promise<void>>();
  /** The last events that were let go of, so that a look through the journal does not send them again. */
  readonly #settled = new Set<string>();
  readonly #stopping = new AbortController();
  #dropped = 0;

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
    this.#limits = { ...WEBHOOK_LIMITS, ...options.limits };
  }

  /** How many events wait for their receiver. */
  get held(): number {
    return this.#held.size;
  }

  /** Events that there was no room for since the last look; they are in the journal still. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** The time of the oldest event that is held; undefined where none is. */
  get floorMs(): number | undefined {
    let floorMs: number | undefined;
    for (const { message } of this.#held.values()) floorMs = Math.min(floorMs ?? message.timeMs, message.timeMs);
    return floorMs;
  }

  /** Takes an event on. One that is held already is not taken twice. */
  send(message: WebhookMessage): void {
    if (this.#stopping.signal.aborted || this.#held.has(message.id) || this.#settled.has(message.id)) return;
    if (this.#held.size >= this.#limits.heldMax) {
      this.#dropped += 1;
      return;
    }
    const held: Held = { message, attempts: 0, timer: undefined };
    this.#held.set(message.id, held);
    this.#ready.push(held);
    this.#fill();
  }

  /** Sends nothing more. What is held stays in `floorMs`. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const { timer } of this.#held.values()) timer?.cancel();
    await Promise.allSettled(this.#sending);
  }

  #fill(): void {
    while (this.#sending.size < this.#limits.atOnceMax && !this.#stopping.signal.aborted) {
      const next = this.#ready.shift();
      if (next === undefined) return;
      const sending = this.#attempt(next);
      this.#sending.add(sending);
      void sending.finally(() => {
        this.#sending.delete(sending);
        this.#fill();
      });
    }
  }

  async #attempt(held: Held): Promise<void> {
    const { log } = this.#options;
    held.attempts += 1;
    const fault = await this.#post(held.message);
    if (this.#stopping.signal.aborted && fault !== undefined) return;
    if (fault === undefined) return this.#settle(held);
    const fields = { event: held.message.id, attempts: held.attempts, fault };
    if (held.attempts >= this.#limits.attemptsMax) {
      log.log("error", "webhook: an event was given up", fields);
      return this.#settle(held);
    }
    log.log("warn", "webhook: an event was not taken", fields);
    held.timer = this.#options.clock.after(this.#backoffMs(held.attempts), () => {
      held.timer = undefined;
      this.#ready.push(held);
      this.#fill();
    });
  }

  #settle({ message }: Held): void {
    this.#held.delete(message.id);
    this.#settled.add(message.id);
    const [oldest] = this.#settled;
    if (this.#settled.size > SETTLED_MAX && oldest !== undefined) this.#settled.delete(oldest);
  }

  /** Doubles, with up to a quarter taken off, so that many do not come back at once. */
  #backoffMs(attempts: number): number {
    const { backoffMinMs, backoffMaxMs } = this.#limits;
    const wholeMs = Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(attempts - 1, 30));
    const [byte = 0] = this.#options.random.bytes(1);
    return Math.round(wholeMs * (1 - byte / 1_024));
  }

  /** Why the receiver did not take it, in a word; undefined where it did. */
  async #post(message: WebhookMessage): Promise<string | undefined> {
    const { url, key, clock } = this.#options;
    const timeout = new AbortController();
    const timer = clock.after(this.#limits.timeoutMs, () => timeout.abort());
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: webhookHeaders(message, key, clock.nowMs()),
        body: message.body,
        redirect: "manual",
        signal: AbortSignal.any([timeout.signal, this.#stopping.signal]),
      });
      // Nothing of the answer is read but its status.
      await response.body?.cancel();
      return response.status >= 200 && response.status < 300 ? undefined : `status ${response.status}`;
    } catch (error) {
      if (this.#stopping.signal.aborted) return "stopped";
      return timeout.signal.aborted ? "timeout" : `unreachable${causeCode(error)}`;
    } finally {
      timer.cancel();
    }
  }
}

/** The system's word for what failed, such as ECONNREFUSED; addresses and texts stay out of the log. */
function causeCode(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code: unknown = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : undefined;
  return typeof code === "string" && /^[A-Z_]{1,40}$/.test(code) ? ` (${code})` : "";
}
