/**
 * One child process: started in a process group of its own, paused, told to stop, and swept up.
 *
 * Invariants:
 * - Its end is seen once, with what it ended by; whatever is left of its group is killed then.
 * - What it writes to standard error is read at a bounded pace and kept in part: a flood neither blocks the host nor fills it.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { HoldfastError } from "../../base/errors.ts";
import type { Clock } from "../../base/ports.ts";
import { Tail } from "../../node/index.ts";
import type { Command } from "./command.ts";
import { INFO_FD } from "./confinement.ts";

/** How a process ended: by itself with a code, or by a signal. */
export type Exit = { readonly kind: "code"; readonly code: number } | { readonly kind: "signal"; readonly signal: string };

/** What a child is started with. */
export interface ChildOptions {
  readonly command: Command;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Whether bubblewrap stands before the program. */
  readonly confined: boolean;
  /** Whether standard output is text like standard error; otherwise it is the line. */
  readonly outputIsText: boolean;
  readonly stderrBytesMax: number;
  readonly clock: Clock;
}

/** A started child. */
export class Child {
  readonly pid: number;
  /** Resolves with how it ended. Never rejects. */
  readonly exited: Promise<Exit>;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly #clock: Clock;
  readonly #confined: boolean;
  readonly #tail: Tail;
  /** The process that bubblewrap confines, once it is known. */
  #inner: number | undefined;
  #exit: Exit | undefined;
  #isPaused = false;

  /** Starts a child. Rejects with FAILED_PRECONDITION where the program cannot be started, with RESOURCE_EXHAUSTED where nothing can. */
  static start(options: ChildOptions): Promise<Child> {
    const { command, cwd, env, confined } = options;
    return new Promise((resolve, reject) => {
      const stdio: "pipe"[] = confined ? ["pipe", "pipe", "pipe", "pipe"] : ["pipe", "pipe", "pipe"];
      try {
        const started = spawn(command.file, [...command.args], { cwd, env: { ...env }, stdio, detached: true });
        started.on("error", (error) => reject(unstarted(error)));
        started.once("spawn", () => resolve(new Child(started, options)));
      } catch (error) {
        reject(unstarted(error));
      }
    });
  }

  private constructor(started: ChildProcess, { clock, confined, outputIsText, stderrBytesMax }: ChildOptions) {
    const { pid, stdin, stdout, stderr } = started;
    if (pid === undefined || stdin === null || stdout === null || stderr === null) throw unstarted(undefined);
    this.pid = pid;
    this.stdin = stdin;
    this.stdout = stdout;
    this.#clock = clock;
    this.#confined = confined;
    this.#tail = new Tail({ bytesMax: stderrBytesMax, clock });
    // Writes to a child that has gone fail here; that it has gone is told by its end.
    stdin.on("error", () => undefined);
    this.#tail.follow(stderr);
    if (outputIsText) this.#tail.follow(stdout);
    const info = started.stdio[INFO_FD];
    if (info !== undefined && info !== null && "read" in info) this.#readInfo(info);
    this.exited = new Promise((resolve) => {
      started.once("exit", (code, signal) => {
        const exit = exitOf(code, signal, confined);
        this.#exit = exit;
        // Its group's number stays taken while a member of the group lives, so this can meet nobody else.
        this.#signalGroup("SIGKILL");
        resolve(exit);
      });
    });
  }

  /** How it ended; undefined while it lives. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** The end of what it wrote to standard error and nobody has taken yet. */
  takeWords(): string {
    return this.#tail.take();
  }

  /** The same, once nothing more comes or `waitMs` have passed. */
  lastWords(waitMs: number): Promise<string> {
    return this.#tail.lastText(waitMs);
  }

  /** Stops its processor time; it keeps its memory. */
  pause(): void {
    this.#isPaused = true;
    this.#signalGroup("SIGSTOP");
  }

  /** Goes on. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#signalGroup("SIGCONT");
  }

  /** Tells it to leave, and kills it after a grace. Resolves when it has gone. */
  async stop(graceMs: number): Promise<void> {
    if (this.#exit === undefined) {
      this.stdin.end();
      // To bubblewrap itself SIGTERM is the end, and the end of what it confines: there the end of standard input says it.
      if (!this.#confined) this.#signalGroup("SIGTERM");
      this.#signalGroup("SIGCONT");
      const timer = this.#clock.after(graceMs, () => this.#kill());
      await this.exited;
      timer.cancel();
    }
    this.stdout.destroy();
  }

  /** Kills what is confined before what confines it, which then reaps it. */
  #kill(): void {
    if (this.#inner === undefined) return this.#signalGroup("SIGKILL");
    send(this.#inner, "SIGKILL");
    this.#clock.after(REAP_MS, () => {
      if (this.#exit === undefined) this.#signalGroup("SIGKILL");
    });
  }

  #signalGroup(signal: NodeJS.Signals): void {
    send(-this.pid, signal);
  }

  #readInfo(stream: Readable): void {
    let text = "";
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const [, pid] = /"child-pid":\s*(\d+)/.exec(text) ?? [];
      if (pid !== undefined) this.#inner = Number(pid);
    });
  }
}

/** bubblewrap passes a signal on that ended what it confined, as shells do: by a code above 128. */
function exitOf(code: number | null, signal: string | null, confined: boolean): Exit {
  if (code === null) return { kind: "signal", signal: signal ?? "SIGKILL" };
  const [passedOn] = Object.entries(constants.signals).find(([, number]) => number === code - 128) ?? [];
  return confined && passedOn !== undefined ? { kind: "signal", signal: passedOn } : { kind: "code", code };
}

/** How long bubblewrap may take to leave once what it confines is gone. */
const REAP_MS = 1_000;

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has gone already.
  }
}

/** Where a program that exists cannot be started, the host itself is short of something. */
const SHORTAGES = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"]);

function unstarted(cause: unknown): HoldfastError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (SHORTAGES.has(code)) {
    return new HoldfastError("resource_exhausted", "runtime: this host cannot start another process now; retry later", { cause });
  }
  return new HoldfastError(
    "failed_precondition",
    "runtime: the harness's command cannot be started; it must be executable, and its working directory must exist",
    { cause, details: { code } },
  );
}
