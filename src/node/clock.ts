/** The clock of the machine. */

import type { Clock, Timer } from "../base/ports.ts";

/** The longest span that one Node timer can wait; longer ones wait in turns. */
const TIMER_MS_MAX = 2_147_483_647;

/** The system's clock: wall time, the monotonic clock, and timers of any length. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, options) => sleep(ms, options?.signal),
  after: (ms, task) => arm(ms, task, false),
};

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = arm(
      ms,
      () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      },
      true,
    );
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** `keepsAlive`: whether the process waits for the timer before it ends. */
function arm(ms: number, task: () => void, keepsAlive: boolean): Timer {
  let pending: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    const spanMs = Math.min(leftMs, TIMER_MS_MAX);
    pending = setTimeout(() => (leftMs > spanMs ? wait(leftMs - spanMs) : task()), spanMs);
    if (!keepsAlive) pending.unref();
  };
  wait(ms);
  return { cancel: () => clearTimeout(pending) };
}
