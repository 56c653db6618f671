/**
 * Long answers that leave time for others.
 *
 * A journal that is in memory, or in the file system's cache, answers without ever waiting; a stream of it then keeps the event loop
 * for as long as its reader's buffers take, and a hundred such streams for a hundred times that.
 *
 * Invariant: between two turns of the event loop at most one stream makes a share, whatever their number. So a new connection, and a
 * call that is short, waits for one share and not for all of them.
 */

/** What a stream may make in one turn. */
const SHARE_BYTES = 64 * 1024;

/** One long answer. */
export class Pace {
  #made = 0;

  /** Takes `bytes` into account. Returns undefined while the share lasts, else a promise of the stream's next turn. */
  made(bytes: number): Promise<void> | undefined {
    this.#made += bytes;
    if (this.#made < SHARE_BYTES) return undefined;
    this.#made = 0;
    return nextTurn();
  }
}

/** The streams that wait for a turn; the event loop is the process's, and so are they. */
const waiting: (() => void)[] = [];

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  const next = waiting.shift();
  // An immediate that is set by an immediate runs after the loop has looked at its sockets.
  if (waiting.length > 0) setImmediate(giveTurn);
  next?.();
}
