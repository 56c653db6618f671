/** A wait that can be given up. */

/** What `work` comes to, or the signal's reason where that comes first; what `work` comes to then is nobody's. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const giveUp = (): void => reject(signal.reason);
    const done = (): void => signal.removeEventListener("abort", giveUp);
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    work.finally(done).then(resolve, reject);
  });
}
