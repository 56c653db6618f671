/** When a lost connection is made anew, and how long that waits. */

import { HoldfastError } from "../base/errors.ts";
import type { Ports } from "../base/ports.ts";

/** How a stream that lost its connection goes on. */
export interface ReconnectOptions {
  /** Attempts in a row that may fail before the stream rejects with the last error. Default 10. */
  readonly attemptsMax?: number | undefined;
  /** The wait before the first attempt; it doubles with each further one. Default 100. */
  readonly delayMinMs?: number | undefined;
  /** The longest wait between two attempts. Default 5,000. */
  readonly delayMaxMs?: number | undefined;
}

/** The options with their defaults, or undefined when streams are not to be resumed. */
export type ReconnectPolicy = Readonly<Record<keyof ReconnectOptions, number>> | undefined;

/** `false` turns reconnecting off. */
export function reconnectPolicy(options: ReconnectOptions | false | undefined): ReconnectPolicy {
  if (options === false) return undefined;
  return {
    attemptsMax: options?.attemptsMax ?? 10,
    delayMinMs: options?.delayMinMs ?? 100,
    delayMaxMs: options?.delayMaxMs ?? 5_000,
  };
}

/** Whether a stream ended because its connection did. */
export function isConnectionLost(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === "unavailable";
}

/** Whether a lost connection was found by the transport itself, which then names the status; a server that says so does not. */
export function isConnectionFault(error: unknown): boolean {
  return isConnectionLost(error) && error instanceof HoldfastError && error.details?.["grpcStatus"] !== undefined;
}

/** Counts the attempts of one stream and waits between them. */
export class Attempts {
  readonly #policy: ReconnectPolicy;
  readonly #ports: Pick<Ports, "clock" | "random">;
  #failed = 0;
  #sinceMs: number;

  constructor(policy: ReconnectPolicy, ports: Pick<Ports, "clock" | "random">) {
    this.#policy = policy;
    this.#ports = ports;
    this.#sinceMs = ports.clock.monotonicMs();
  }

  /** Tells that the stream moved on: the next loss is a first one. */
  progress(): void {
    this.#failed = 0;
  }

  /** Waits before the next attempt. Rejects with `error` when there is to be none, with the signal's reason when it fires. */
  async afterLoss(error: unknown, signal: AbortSignal | undefined): Promise<void> {
    const policy = this.#policy;
    if (policy === undefined || !isConnectionLost(error)) throw error;
    const { clock } = this.#ports;
    // A connection that held for longer than the longest wait was a good one, even if nothing came over it.
    if (clock.monotonicMs() - this.#sinceMs > policy.delayMaxMs * 2) this.#failed = 0;
    if (this.#failed >= policy.attemptsMax) throw error;
    const delayMs = Math.min(policy.delayMaxMs, policy.delayMinMs * 2 ** this.#failed);
    this.#failed++;
    await clock.sleep(delayMs * (0.5 + this.#fraction() / 2), { signal });
    this.#sinceMs = clock.monotonicMs();
  }

  /** 0 to 1: clients that lost one server do not all come back in the same moment. */
  #fraction(): number {
    return (this.#ports.random.bytes(1)[0] ?? 0) / 255;
  }
}
