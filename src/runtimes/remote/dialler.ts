/**
 * Keeps one connection, and dials when there is none and somebody needs it.
 *
 * Invariants:
 * - Whoever needs a connection while it is dialled waits for the same one. A caller that gives up leaves it to the others.
 * - After an attempt that failed the next one waits: 100 ms, and twice as long each time, up to 5 s. A connection that was had begins
 *   anew, unless it was lost as soon as it was had.
 */

import { HoldfastError } from "../../base/errors.ts";
import { SILENT_LOG, type Clock, type Log } from "../../base/ports.ts";
import { untilAborted } from "../../base/until-aborted.ts";
import type { CallOptions } from "../../spi/index.ts";
import type { Connection } from "./connection.ts";

/** What a dialler is made of. */
export interface DiallerOptions {
  readonly clock: Clock;
  readonly log?: Log | undefined;
  /** Makes a connection; the signal fires when the dialler is disposed of. */
  readonly dial: (signal: AbortSignal) => Promise<Connection>;
}

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 5_000;

/** Hands out the connection. */
export class Dialler implements AsyncDisposable {
  readonly #options: DiallerOptions;
  readonly #closing = new AbortController();
  #connection: Connection | undefined;
  #dialling: Promise<Connection> | undefined;
  #backoffMs = 0;
  /** When the last attempt began or its connection was had. */
  #triedMs = 0;

  constructor(options: DiallerOptions) {
    this.#options = options;
  }

  /** Throws UNAVAILABLE once it was disposed of. */
  throwIfClosed(): void {
    this.#closing.signal.throwIfAborted();
  }

  /** The connection that there is, or a new one. Rejects with UNAVAILABLE where nobody answers. */
  async connection({ signal }: CallOptions = {}): Promise<Connection> {
    signal?.throwIfAborted();
    this.throwIfClosed();
    if (this.#connection?.isLost === false) return this.#connection;
    this.#dialling ??= this.#dial().finally(() => (this.#dialling = undefined));
    return untilAborted(this.#dialling, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new HoldfastError("unavailable", "runtime: it is being closed"));
    await this.#dialling?.catch(() => undefined);
    await this.#connection?.[Symbol.asyncDispose]();
  }

  async #dial(): Promise<Connection> {
    const { clock, log = SILENT_LOG, dial } = this.#options;
    const { signal } = this.#closing;
    const heldMs = clock.monotonicMs() - this.#triedMs;
    if (this.#connection !== undefined && heldMs >= this.#backoffMs) this.#backoffMs = 0;
    this.#connection = undefined;
    const waitMs = this.#backoffMs - heldMs;
    if (this.#backoffMs > 0 && waitMs > 0) await clock.sleep(waitMs, { signal });
    this.#triedMs = clock.monotonicMs();
    this.#backoffMs = Math.min(BACKOFF_MS_MAX, Math.max(BACKOFF_MS_MIN, 2 * this.#backoffMs));
    const connection = await dial(signal);
    this.#triedMs = clock.monotonicMs();
    this.#connection = connection;
    log.log("info", "a harness elsewhere is connected");
    void connection.harness.closed.then((reason) =>
      log.log("info", "the connection to a harness elsewhere is lost", { reason: reason.message }),
    );
    if (signal.aborted) await connection[Symbol.asyncDispose]();
    return connection;
  }
}
