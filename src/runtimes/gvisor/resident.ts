/**
 * One incarnation: its harness, and the sandbox or the image that holds its memory.
 *
 * Invariants:
 * - What is done to it is done one after the other. A turn waits until its sandbox is there.
 * - A capture ends the sandbox (gVisor writes an image once); an incarnation that goes on is brought back from the image, so the harness
 *   that was attached stays the same.
 * - Memory is never captured during a turn.
 */

import { HoldfastError } from "../../base/errors.ts";
import type { Log } from "../../base/ports.ts";
import { ComputeState, type Harness, type Incarnation } from "../../spi/index.ts";
import { goneError, stoppedError } from "./ended.ts";
import type { SandboxHost, StoredImage } from "./sandbox-host.ts";
import type { Sandbox } from "./sandbox.ts";

/** What an incarnation is made of. */
export interface ResidentOptions {
  readonly incarnation: Incarnation;
  /** The memory that it begins with; undefined for a cold start. */
  readonly image: StoredImage | undefined;
  readonly host: SandboxHost;
  readonly log: Log;
  /** Called once, when it is gone. */
  readonly onEnded: (resident: Resident) => void;
}

/** One incarnation. */
export class Resident {
  incarnation: Incarnation;
  readonly harness: Harness;
  readonly #options: ResidentOptions;
  readonly #ending = new AbortController();
  #sandbox: Sandbox | undefined;
  /** Its memory while it has no sandbox. */
  #image: StoredImage | undefined;
  #isPaused = false;
  #turns = 0;
  #turnsBegun = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ResidentOptions) {
    this.#options = options;
    this.incarnation = options.incarnation;
    this.#image = options.image;
    this.harness = {
      describe: async (call) => (await this.present(call?.signal)).harness.describe(call),
      run: async (start, sink, call) => {
        this.#turns += 1;
        this.#turnsBegun += 1;
        try {
          await (await this.present(call.signal)).harness.run(start, sink, call);
        } finally {
          this.#turns -= 1;
        }
      },
    };
  }

  get isGone(): boolean {
    return this.#ending.signal.aborted;
  }

  get state(): ComputeState {
    if (this.isGone) return ComputeState.COMPUTE_TERMINATED;
    return this.#isPaused ? ComputeState.COMPUTE_WARM : ComputeState.COMPUTE_LIVE;
  }

  /** What a `local` snapshot is called: the incarnation, and how many turns it had begun. */
  get localReference(): string {
    return `${this.incarnation.id}/${this.#turnsBegun}`;
  }

  /** Its sandbox, going on where it was paused, started or brought back where there is none. Rejects with UNAVAILABLE where it is gone. */
  present(signal: AbortSignal | undefined): Promise<Sandbox> {
    return this.#after(async () => {
      signal?.throwIfAborted();
      if (this.isGone) throw goneError();
      const sandbox = (this.#sandbox ??= await this.#begin(signal));
      if (!sandbox.isAlive) {
        this.#end(goneError());
        throw goneError();
      }
      await sandbox.resume();
      this.#isPaused = false;
      return sandbox;
    });
  }

  /** Pauses the sandbox. */
  async pause(): Promise<void> {
    this.#refuseInTurn();
    await this.#after(async () => {
      this.#refuseInTurn();
      if (this.isGone) throw goneError();
      await this.#sandbox?.pause();
      this.#isPaused = true;
    });
  }

  /**
   * Captures its memory and stores it. Afterwards it goes on (`on`), stays as it is without a sandbox until it is asked for (`paused`),
   * or is gone (`gone`). One that is without a sandbox gives the image that it is.
   */
  async capture(afterwards: "on" | "paused" | "gone"): Promise<StoredImage> {
    this.#refuseInTurn();
    return this.#after(async () => {
      this.#refuseInTurn();
      if (this.isGone) throw goneError();
      const image = await (this.#sandbox === undefined && this.#image !== undefined
        ? this.#rested(this.#image)
        : this.#capture(afterwards === "on"));
      if (afterwards === "gone") this.#end(stoppedError());
      return image;
    });
  }

  /** Ends it. Resolves when nothing is left of it. */
  async stop(): Promise<void> {
    this.#end(stoppedError());
    const sandbox = this.#sandbox;
    await sandbox?.stop();
    await this.#after(async () => this.#sandbox?.stop());
  }

  /** The image that it rests in is about to be named once more. */
  async #rested(image: StoredImage): Promise<StoredImage> {
    if ((await this.#options.host.renew(image.uri, {})) === undefined) return image;
    throw new HoldfastError("data_loss", "snapshot: a part of the image that the sandbox rests in is gone");
  }

  async #capture(goesOn: boolean): Promise<StoredImage> {
    const { host } = this.#options;
    const sandbox = this.#sandbox;
    if (sandbox === undefined) throw goneError();
    // From here on the end of the sandbox is not the end of the incarnation.
    this.#sandbox = undefined;
    try {
      const outcome = await host.capture(sandbox, this.incarnation.sessionUid, (gone) => this.#onGone(gone));
      if (outcome.kind === "unstored") {
        this.#sandbox = outcome.sandbox;
        throw outcome.error;
      }
      this.#image = outcome.image;
    } catch (error) {
      this.#sandbox ??= sandbox.isAlive ? sandbox : undefined;
      if (this.#sandbox === undefined) this.#end(goneError());
      throw error;
    }
    const image = this.#image;
    if (goesOn) void this.#bringBack(image);
    else await host.release(image);
    return image;
  }

  /** At once, so that the next turn need not wait; where it fails, the next turn tries again. */
  async #bringBack(image: StoredImage): Promise<void> {
    const { host, log } = this.#options;
    try {
      await this.present(this.#ending.signal);
    } catch (error) {
      if (!this.isGone)
        log.log("warn", "a captured sandbox could not be brought back yet", { reason: error instanceof Error ? error.message : "" });
    } finally {
      await host.release(image);
    }
  }

  async #begin(signal: AbortSignal | undefined): Promise<Sandbox> {
    const either = signal === undefined ? this.#ending.signal : AbortSignal.any([signal, this.#ending.signal]);
    return this.#options.host.begin({ image: this.#image, signal: either, onGone: (gone) => this.#onGone(gone) });
  }

  #onGone(sandbox: Sandbox): void {
    if (this.#sandbox === sandbox) this.#end(goneError());
  }

  #end(why: HoldfastError): void {
    if (this.isGone) return;
    this.#ending.abort(why);
    this.#options.onEnded(this);
  }

  #refuseInTurn(): void {
    if (this.#turns > 0) throw new HoldfastError("aborted", "session: a turn of it runs; its memory is captured between turns");
  }

  #after<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#last.then(task, task);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
