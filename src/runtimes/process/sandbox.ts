/**
 * A child and the line to it: one incarnation.
 *
 * Invariants:
 * - It lives as long as both do. A child without its line is stopped; a line without its child is closed, with what the child ended by.
 * - A child in which the host gave an exchange up is stopped: no later turn meets what it still does.
 * - What a child wrote to standard error is logged once: with the run of it that threw, or with its end.
 */

import { HoldfastError } from "../../base/errors.ts";
import type { LogFields } from "../../base/ports.ts";
import { untilAborted } from "../../base/until-aborted.ts";
import { createLineHarness, type HostLine, type LineHarness } from "../../harness-wire/index.ts";
import { dialHarness, hostLineOver } from "../../harness-wire/node/index.ts";
import { ApprovalParkedError, HarnessFailure, type Harness, type HarnessDescriptor } from "../../spi/index.ts";
import { Child, type Exit } from "./child.ts";
import { childLine } from "./child-line.ts";
import { commandOf, LISTEN_VARIABLE, type Programs } from "./command.ts";
import { endedError, lateError, stoppedError } from "./ended.ts";
import type { ProcessSettings } from "./options.ts";
import { findPrograms } from "./programs.ts";
import { unconfinable } from "./unconfinable.ts";
import { makeSocketFolder, untilListening, type SocketFolder } from "./unix-line.ts";
import type { Watchdog } from "./watchdog.ts";

/** What a sandbox is started with. */
export interface SandboxOptions {
  readonly settings: ProcessSettings;
  readonly watchdog: Watchdog;
  readonly signal: AbortSignal | undefined;
  /** Called once nothing is left of it, however that came. */
  readonly onGone: () => void;
}

/** How long the end of a child is waited for once its line is closed, and the end of its line once it has gone. */
const NEWS_MS = 1_000;

/** How long after a throw its words are logged: they were written before it, in another pipe. */
const WORDS_MS = 50;

/** One child that answers. */
export class Sandbox {
  readonly harness: Harness;
  readonly child: Child;
  readonly #settings: ProcessSettings;
  readonly #folder: SocketFolder | undefined;
  #line: LineHarness | undefined;
  /** What it said of itself: it holds for as long as the process does. */
  #descriptor: HarnessDescriptor | undefined;
  #turns = 0;
  #stopping: Promise<void> | undefined;
  /** It was told to leave while it lived. */
  #wasTold = false;
  /** A turn that threw, of which the log has not been told yet. */
  #threw: LogFields | undefined;
  readonly #gone: Promise<void>;

  /**
   * Starts a child and waits until it answers. Rejects with FAILED_PRECONDITION where it cannot be started, with UNAVAILABLE where it ended
   * or does not answer in time; nothing is left of it then.
   */
  static async start(options: SandboxOptions): Promise<Sandbox> {
    const { settings, signal } = options;
    signal?.throwIfAborted();
    const programs = findPrograms(settings);
    const folder = settings.line === "unix" ? await makeSocketFolder(options.watchdog) : undefined;
    let sandbox: Sandbox | undefined;
    try {
      sandbox = new Sandbox(await startChild(settings, programs, folder), folder, options);
      await sandbox.#answer(signal);
      return sandbox;
    } catch (error) {
      await sandbox?.stop();
      await folder?.[Symbol.asyncDispose]();
      throw (await unconfinable(sandbox?.child, settings)) ?? error;
    }
  }

  private constructor(child: Child, folder: SocketFolder | undefined, options: SandboxOptions) {
    this.child = child;
    this.#settings = options.settings;
    this.#folder = folder;
    options.watchdog.watch(child.pid);
    this.#gone = child.exited.then(async (exit) => {
      options.watchdog.forget(child.pid);
      await this.#mourn(exit);
      options.onGone();
    });
    this.harness = {
      describe: async (call) => (this.#descriptor ??= await this.#line!.describe(call)),
      run: async (start, sink, call) => {
        this.#turns += 1;
        try {
          await this.#line!.run(start, sink, call);
        } catch (error) {
          if (!call.signal.aborted && this.isAlive) this.#hear(error, { session: start.sessionUid, execution: start.executionId });
          throw error;
        } finally {
          this.#turns -= 1;
        }
      },
    };
  }

  get isAlive(): boolean {
    return this.child.exit === undefined && this.#stopping === undefined;
  }

  get isInTurn(): boolean {
    return this.#turns > 0;
  }

  /** Ends it: SIGTERM, a grace, SIGKILL. Resolves when nothing is left of it. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#wasTold = this.child.exit === undefined;
    await this.child.stop(this.#settings.stopGraceMs);
    await this.#gone;
  }

  async #answer(signal: AbortSignal | undefined): Promise<void> {
    const { ports, startTimeoutMs } = this.#settings;
    const giveUp = new AbortController();
    const stopWaiting = (): void => giveUp.abort(signal?.reason);
    signal?.addEventListener("abort", stopWaiting, { once: true });
    const timer = ports.clock.after(startTimeoutMs, () => giveUp.abort(lateError(startTimeoutMs)));
    void this.child.exited.then((exit) => giveUp.abort(endedError(exit)));
    try {
      await untilAborted(this.#greet(giveUp.signal), giveUp.signal);
    } finally {
      timer.cancel();
      signal?.removeEventListener("abort", stopWaiting);
    }
  }

  async #greet(signal: AbortSignal): Promise<void> {
    const { ports, limits, log, grant, startTimeoutMs } = this.#settings;
    const line = childLine(await this.#dial(signal), {
      whyEnded: () => this.#whyEnded(),
      onGivenUp: () => void this.stop(),
    });
    if (signal.aborted) return await line[Symbol.asyncDispose]();
    const harness = createLineHarness({ line, clock: ports.clock, log, grant, limits: { ...limits, helloTimeoutMs: startTimeoutMs } });
    this.#line = harness;
    void harness.closed.then(() => this.stop());
    await harness.ready();
  }

  async #dial(signal: AbortSignal): Promise<HostLine> {
    const { stdin, stdout } = this.child;
    const { ports, limits, startTimeoutMs, grant } = this.#settings;
    const frameBytesMax = limits?.frameBytesMax;
    if (this.#folder === undefined)
      return hostLineOver({ readable: stdout, writable: stdin }, frameBytesMax === undefined ? {} : { frameBytesMax });
    const { socket, address } = this.#folder;
    await untilListening(socket, { clock: ports.clock, signal });
    const { line } = await dialHarness(address, { frameBytesMax, signal, timeoutMs: startTimeoutMs, offersHost: grant !== undefined });
    return line;
  }

  /** The line is closed: mostly since the child has gone, or is about to. */
  async #whyEnded(): Promise<HoldfastError | undefined> {
    const news = Promise.withResolvers<Exit | undefined>();
    const timer = this.#settings.ports.clock.after(NEWS_MS, () => news.resolve(undefined));
    void this.child.exited.then(news.resolve);
    const exit = await news.promise;
    timer.cancel();
    if (this.#wasTold) return stoppedError();
    return exit === undefined ? undefined : endedError(exit);
  }

  /** Keeps that a turn threw until what its harness wrote about it has been read. */
  #hear(error: unknown, turn: LogFields): void {
    if (error instanceof HarnessFailure || error instanceof ApprovalParkedError) return;
    // A line that was lost, which the end of the child tells of; or what the host itself told the harness.
    if (error instanceof HoldfastError && error.code === "unavailable") return;
    this.#tellThrow();
    this.#threw = turn;
    this.#settings.ports.clock.after(WORDS_MS, () => {
      // The end of a child waits for the last of its words.
      if (this.child.exit === undefined) this.#tellThrow();
    });
  }

  #tellThrow(): void {
    if (this.#threw === undefined) return;
    const { log } = this.#settings;
    log.log("warn", "what a harness that threw wrote to standard error", {
      pid: this.child.pid,
      ...this.#threw,
      stderr: this.child.takeWords(),
    });
    this.#threw = undefined;
  }

  async #mourn(exit: Exit): Promise<void> {
    const { ports, log } = this.#settings;
    const wasTold = this.#wasTold;
    const line = this.#line;
    if (line !== undefined) {
      // What it said before it went is still read.
      const timer = ports.clock.after(NEWS_MS, () => void line[Symbol.asyncDispose]());
      await line.closed;
      timer.cancel();
    }
    const stderr = await this.child.lastWords(NEWS_MS);
    const hasThrown = this.#threw !== undefined;
    this.#tellThrow();
    const ended = exit.kind === "code" ? { code: exit.code } : { signal: exit.signal };
    log.log(wasTold ? "debug" : "warn", wasTold ? "a harness's process was stopped" : "a harness's process ended", {
      pid: this.child.pid,
      ...ended,
      stderr: stderr === "" || hasThrown ? undefined : stderr,
    });
    await this.#folder?.[Symbol.asyncDispose]();
  }
}

function startChild(settings: ProcessSettings, programs: Programs, folder: SocketFolder | undefined): Promise<Child> {
  const env = { ...settings.env, [LISTEN_VARIABLE]: folder?.address ?? "stdio" };
  const { cwd, stderrBytesMax, ports, confinement } = settings;
  return Child.start({
    command: commandOf(settings, programs, folder?.path),
    cwd,
    env,
    confined: confinement !== undefined,
    outputIsText: folder !== undefined,
    stderrBytesMax,
    clock: ports.clock,
  });
}
