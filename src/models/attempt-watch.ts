/**
 * Watches one attempt: passes the caller's abort on, and aborts by itself when a time limit runs out.
 *
 * Invariant: only the provider's silence counts. While the caller holds a chunk and reads nothing, the idle limit stands still.
 */

import type { Clock, Timer } from "../base/ports.ts";
import type { TimeLimit } from "./fault.ts";
import type { ProviderLimits } from "./limits.ts";

/** Why a request is aborted that nobody needs any more. One for all: the stack of a new one is most of what an abort costs. */
const OVER = new DOMException("the attempt is over", "AbortError");

/** What an attempt is watched by. */
export interface AttemptWatchOptions {
  readonly clock: Clock;
  readonly limits: ProviderLimits;
  /** The caller's signal. */
  readonly signal: AbortSignal;
  /** When the whole call is over, on the monotonic clock. */
  readonly callEndsMs: number;
}

/** The watch of one attempt; `stop` it whatever happened. */
export class AttemptWatch {
  readonly #options: AttemptWatchOptions;
  readonly #controller = new AbortController();
  readonly #callTimer: Timer;
  readonly #onAbort: () => void;
  #silenceTimer: Timer | undefined;
  #silentSinceMs: number;
  #waitsFor: "first_byte" | "idle" = "first_byte";
  #expired: TimeLimit | undefined;

  constructor(options: AttemptWatchOptions) {
    const { clock, signal } = options;
    this.#options = options;
    this.#onAbort = () => this.#controller.abort(signal.reason);
    if (signal.aborted) this.#onAbort();
    signal.addEventListener("abort", this.#onAbort, { once: true });
    this.#silentSinceMs = clock.monotonicMs();
    this.#callTimer = clock.after(Math.max(0, options.callEndsMs - this.#silentSinceMs), () => this.#expire("call"));
    this.#armSilence(this.#limitMs());
  }

  /** Fires when the attempt has to stop. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The limit that ran out; undefined while none did. */
  get expired(): TimeLimit | undefined {
    return this.#expired;
  }

  /** Something of the answer has arrived. */
  touch(): void {
    this.#waitsFor = "idle";
    this.#silentSinceMs = this.#options.clock.monotonicMs();
  }

  /** The caller has a chunk in hand: the provider's silence does not count. */
  hold(): void {
    this.#silenceTimer?.cancel();
    this.#silenceTimer = undefined;
  }

  /** The caller wants more: silence counts again, from now. */
  release(): void {
    this.#silentSinceMs = this.#options.clock.monotonicMs();
    this.#armSilence(this.#limitMs());
  }

  /** Ends the watch and with it the request, when that is still open. */
  stop(): void {
    this.hold();
    this.#callTimer.cancel();
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#controller.abort(OVER);
  }

  #limitMs(): number {
    const { firstByteTimeoutMs, idleTimeoutMs } = this.#options.limits;
    return this.#waitsFor === "first_byte" ? firstByteTimeoutMs : idleTimeoutMs;
  }

  // One timer serves any number of chunks: when it fires early it is set again for what is left of the limit.
  #armSilence(delayMs: number): void {
    this.#silenceTimer = this.#options.clock.after(delayMs, () => {
      const leftMs = this.#silentSinceMs + this.#limitMs() - this.#options.clock.monotonicMs();
      if (leftMs <= 1) this.#expire(this.#waitsFor);
      else this.#armSilence(leftMs);
    });
  }

  #expire(limit: TimeLimit): void {
    this.#expired ??= limit;
    this.#controller.abort();
  }
}
