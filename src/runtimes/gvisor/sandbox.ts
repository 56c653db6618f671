/**
 * A container and the line to the harness in it.
 *
 * Invariants:
 * - It lives as long as both do. A container without its line is ended; a line without its container is closed, with what it ended by.
 * - A sandbox in which the host gave an exchange up is ended: no later turn meets what it still does.
 * - Its memory is captured with no exchange open and no byte under way in the line.
 */

import { HoldfastError } from "../../base/errors.ts";
import type { HarnessFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { createLineHarness, type HostLine, type LineHarness, type LineResumption } from "../../harness-wire/index.ts";
import { hostLineOver } from "../../harness-wire/node/index.ts";
import type { Harness } from "../../spi/index.ts";
import { Container, type ContainerHost, type Exit } from "./container.ts";
import { endedError, lateError, stoppedError, tooMuchMemory } from "./ended.ts";
import { MemoryWatch } from "./memory-watch.ts";

/** The memory that a sandbox goes on from. */
export interface SandboxImage {
  /** The folder that runsc wrote. */
  readonly folder: string;
  /** What the harness in it knows of its line. */
  readonly line: LineResumption;
}

/** How a sandbox is started. */
export interface SandboxOptions {
  readonly id: string;
  readonly image: SandboxImage | undefined;
  readonly signal: AbortSignal | undefined;
  /** Called once nothing is left of it, however that came. */
  readonly onGone: () => void;
}

/** How long the end of a container is waited for once its line is closed, and the end of its line once it has gone. */
const NEWS_MS = 1_000;

/** One sandbox that answers. */
export class Sandbox {
  readonly #host: ContainerHost;
  readonly #container: Container;
  readonly #line: LineHarness;
  readonly #watch: MemoryWatch | undefined;
  readonly #gone: Promise<void>;
  #why: Error | undefined;
  #isPaused = false;
  /** Its end is the end of a capture. */
  #isCaptured = false;

  /**
   * Starts one and waits until it answers. Rejects with UNAVAILABLE where it ended or does not answer in time; nothing is left of it then.
   */
  static async start(host: ContainerHost, { id, image, signal, onGone }: SandboxOptions): Promise<Sandbox> {
    signal?.throwIfAborted();
    const sandbox = new Sandbox(host, await Container.start(host, id, image?.folder), image?.line, onGone);
    try {
      await sandbox.#answer(signal, image !== undefined);
      return sandbox;
    } catch (error) {
      await sandbox.#end(undefined, 0);
      throw error;
    }
  }

  private constructor(host: ContainerHost, container: Container, resumed: LineResumption | undefined, onGone: () => void) {
    const { ports, limits, log, startTimeoutMs, memoryBytesMax } = host.settings;
    this.#host = host;
    this.#container = container;
    // A restored harness may send frames as long as it was told when it said hello.
    const frameBytesMax = resumed?.hostTakesBytesMax ?? limits?.frameBytesMax;
    const line = hostLineOver(
      { readable: container.stdout, writable: container.stdin },
      frameBytesMax === undefined ? {} : { frameBytesMax },
    );
    this.#line = createLineHarness({
      line: this.#explained(line),
      clock: ports.clock,
      log,
      limits: { ...limits, helloTimeoutMs: startTimeoutMs, describeTimeoutMs: startTimeoutMs },
      resumed,
    });
    if (memoryBytesMax !== undefined) {
      const onOver = (): void => void this.#end(tooMuchMemory(memoryBytesMax), 0);
      this.#watch = new MemoryWatch(ports.clock, () => container.sandboxPid, memoryBytesMax, onOver);
    }
    void this.#line.closed.then(() => this.#end(undefined, host.settings.stopGraceMs));
    this.#gone = container.ended.then(async (exit) => {
      this.#watch?.[Symbol.dispose]();
      await this.#mourn(exit);
      onGone();
    });
  }

  get harness(): Harness {
    return this.#line;
  }

  get isAlive(): boolean {
    return this.#container.exit === undefined && this.#why === undefined;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** It keeps its memory and has no processor time any more. */
  async pause(): Promise<void> {
    if (this.#isPaused) return;
    await this.#rest();
    await this.#container.pause();
    this.#isPaused = true;
  }

  /** Goes on. */
  async resume(): Promise<void> {
    if (!this.#isPaused) return;
    await this.#container.resume();
    this.#isPaused = false;
  }

  /**
   * Captures its memory into `folder`; the sandbox ends with it. Rejects with UNAVAILABLE where that fails: then it goes on, or is gone.
   */
  async capture(folder: string): Promise<SandboxImage> {
    await this.resume();
    const line = await this.#rest();
    this.#isCaptured = true;
    try {
      await this.#container.checkpoint(folder);
    } catch (error) {
      this.#isCaptured = false;
      throw error;
    }
    await this.#end(stoppedError(), this.#host.settings.stopGraceMs);
    return { folder, line };
  }

  /** Ends it. Resolves when nothing is left of it. */
  async stop(): Promise<void> {
    // What is paused does not see the end of its input.
    await this.#end(stoppedError(), this.#isPaused ? 0 : this.#host.settings.stopGraceMs);
  }

  async #end(why: Error | undefined, graceMs: number): Promise<void> {
    if (this.#container.exit === undefined) this.#why ??= why;
    if (graceMs === 0) this.#container.kill();
    await this.#container.stop(graceMs);
    await this.#gone;
  }

  /** Asks the harness something, so that all that was sent before has been read, and answered. */
  async #rest(): Promise<LineResumption> {
    await this.#line.describe();
    const line = this.#line.resumption;
    if (line === undefined) throw new HoldfastError("aborted", "session: its harness is at work; capture it when the turn has ended");
    return line;
  }

  async #answer(signal: AbortSignal | undefined, isResumed: boolean): Promise<void> {
    const { ports, startTimeoutMs } = this.#host.settings;
    const givenUp = Promise.withResolvers<never>();
    const onAbort = (): void => givenUp.reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = ports.clock.after(startTimeoutMs, () => givenUp.reject(lateError(startTimeoutMs)));
    try {
      // One that goes on says no hello; what it is asked waits in the pipe until it is back.
      await Promise.race([isResumed ? this.#line.describe() : this.#line.ready(), givenUp.promise]);
      signal?.throwIfAborted();
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** The line, which knows why it ended, and tells when the host gives an exchange up. */
  #explained(line: HostLine): HostLine {
    const whyEnded = (): Promise<Error | undefined> => this.#whyEnded();
    const giveUp = (): void => void this.#end(undefined, this.#host.settings.stopGraceMs);
    return {
      takesEncodedEvents: line.takesEncodedEvents,
      send: async (frame, extras) => {
        // A host ends an exchange only where it gives it up; one that ends in order is ended by the harness.
        if (frame.frame?.case === "end") giveUp();
        try {
          await line.send(frame, extras);
        } catch (error) {
          throw (error instanceof HoldfastError && error.code !== "unavailable" ? undefined : await whyEnded()) ?? error;
        }
      },
      frames: explainedFrames(line, whyEnded),
      limitFrames: (bytesMax) => line.limitFrames?.(bytesMax),
      [Symbol.asyncDispose]: () => Promise.resolve(line[Symbol.asyncDispose]()),
    };
  }

  async #whyEnded(): Promise<Error | undefined> {
    const news = Promise.withResolvers<Exit | undefined>();
    const timer = this.#host.settings.ports.clock.after(NEWS_MS, () => news.resolve(undefined));
    void this.#container.ended.then(news.resolve);
    const exit = await news.promise;
    timer.cancel();
    return this.#why ?? (exit === undefined ? undefined : endedError(exit));
  }

  async #mourn(exit: Exit): Promise<void> {
    const { ports, log } = this.#host.settings;
    // What it said before it went is still read.
    const timer = ports.clock.after(NEWS_MS, () => void this.#line[Symbol.asyncDispose]());
    await this.#line.closed;
    timer.cancel();
    const stderr = await this.#container.lastWords(NEWS_MS);
    const wasTold = this.#why !== undefined || this.#isCaptured;
    const ended = exit.kind === "code" ? { code: exit.code } : { signal: exit.signal };
    log.log(wasTold ? "debug" : "warn", wasTold ? "a harness's sandbox was stopped" : "a harness's sandbox ended", {
      container: this.#container.id,
      ...ended,
      stderr: stderr === "" ? undefined : stderr,
    });
  }
}

async function* explainedFrames(line: HostLine, whyEnded: () => Promise<Error | undefined>): AsyncGenerator<HarnessFrame, void, undefined> {
  try {
    yield* line.frames;
  } catch (error) {
    if (error instanceof HoldfastError && error.code !== "unavailable") throw error;
    throw (await whyEnded()) ?? error;
  }
  const why = await whyEnded();
  if (why !== undefined) throw why;
}
