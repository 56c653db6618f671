/**
 * One container of runsc: started afresh or from an image, paused, checkpointed, ended.
 *
 * Invariants:
 * - Its end is seen once. runsc, the sandbox and the gofer are gone then, and so is what runsc kept of them.
 * - It dies with the host: the kernel kills runsc when the host is gone, and the sandbox when runsc is.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { HoldfastError } from "../../base/errors.ts";
import { Tail } from "../../node/index.ts";
import { bundleConfig } from "./bundle.ts";
import type { GvisorSettings } from "./options.ts";
import { openPipes, type StandardPipes } from "./pipes.ts";
import type { Programs } from "./programs.ts";
import { callRunsc, runscFlags } from "./runsc.ts";
import type { Workspace } from "./workspace.ts";

/** How a container ended: its program's code, or the signal that runsc or the program was ended by. */
export type Exit = { readonly kind: "code"; readonly code: number } | { readonly kind: "signal"; readonly signal: string };

/** What all containers of a runtime are made of. */
export interface ContainerHost {
  readonly settings: GvisorSettings;
  readonly programs: Programs;
  readonly workspace: Workspace;
}

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** How long runsc may take to leave once its sandbox was killed. */
const REAP_MS = 2_000;

/** A started container. */
export class Container {
  readonly id: string;
  /** Resolves with how it ended, once nothing is left of it. Never rejects. */
  readonly ended: Promise<Exit>;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly #host: ContainerHost;
  readonly #process: ChildProcess;
  readonly #tail: Tail;
  #exit: Exit | undefined;
  /** runsc has left: the numbers of its processes may be another's. */
  #hasLeft = false;

  /** Starts one; `image` is the folder of the image that it goes on from. Rejects where nothing can be started. */
  static async start(host: ContainerHost, id: string, image: string | undefined): Promise<Container> {
    const bundle = host.workspace.bundleOf(id);
    let pipes: StandardPipes | undefined;
    try {
      await mkdir(bundle);
      await writeFile(join(bundle, "config.json"), JSON.stringify(bundleConfig(host.settings, host.programs, host.workspace)));
      pipes = await openPipes(host.programs.mkfifo, bundle);
      return await Container.#spawn(host, id, pipes, image);
    } catch (error) {
      pipes?.stdin.destroy();
      pipes?.stdout.destroy();
      pipes?.stderr.destroy();
      rmSync(bundle, { recursive: true, force: true });
      throw error instanceof HoldfastError ? error : unstarted(error);
    }
  }

  static #spawn(host: ContainerHost, id: string, pipes: StandardPipes, image: string | undefined): Promise<Container> {
    const { setpriv, runsc } = host.programs;
    const bundle = host.workspace.bundleOf(id);
    const what = image === undefined ? ["run"] : ["restore", "-image-path", image];
    const options = ["-bundle", bundle, "-pid-file", join(bundle, "pid"), id];
    const args = ["--pdeathsig", "KILL", "--", runsc, ...runscFlags(host), ...what, ...options];
    return new Promise((resolve, reject) => {
      const started = spawn(setpriv, args, { cwd: bundle, env: {}, stdio: [...pipes.child], detached: true });
      pipes.given();
      started.once("error", reject);
      started.once("spawn", () => resolve(new Container(host, id, started, pipes)));
    });
  }

  private constructor(host: ContainerHost, id: string, started: ChildProcess, { stdin, stdout, stderr }: StandardPipes) {
    const { ports, stderrBytesMax } = host.settings;
    this.id = id;
    this.stdin = stdin;
    this.stdout = stdout;
    this.#host = host;
    this.#process = started;
    this.#tail = new Tail({ bytesMax: stderrBytesMax, clock: ports.clock });
    this.#tail.follow(stderr);
    stdin.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      started.once("exit", (code, signal) => {
        this.#hasLeft = true;
        void this.#sweep(code === null ? { kind: "signal", signal: signal ?? "SIGKILL" } : exitOf(code)).then(resolve);
      });
    });
  }

  /** How it ended; undefined while it lives. */
  get exit(): Exit | undefined {
    return this.#exit;
  }

  /** The process that is the sandbox, once it is there. */
  get sandboxPid(): number | undefined {
    try {
      const pid = Number(readFileSync(join(this.#host.workspace.bundleOf(this.id), "pid"), "utf8"));
      return Number.isInteger(pid) && pid > 1 ? pid : undefined;
    } catch {
      return undefined;
    }
  }

  /** The end of what it, or runsc, wrote to standard error. */
  lastWords(waitMs: number): Promise<string> {
    return this.#tail.lastText(waitMs);
  }

  async pause(): Promise<void> {
    await callRunsc(this.#host, ["pause", this.id]);
  }

  async resume(): Promise<void> {
    await callRunsc(this.#host, ["resume", this.id]);
  }

  /** Writes an image into a folder that is made for it. The container ends with it. */
  async checkpoint(image: string): Promise<void> {
    await callRunsc(this.#host, ["checkpoint", "-image-path", image, this.id]);
  }

  /** Closes its standard input, and kills it after a grace. Resolves when nothing is left of it. */
  async stop(graceMs: number): Promise<void> {
    this.stdin.end();
    const timer = this.#host.settings.ports.clock.after(graceMs, () => this.kill());
    await this.ended;
    timer.cancel();
  }

  /** Kills the sandbox, and runsc where it does not leave then. */
  kill(): void {
    if (this.#hasLeft) return;
    const pid = this.sandboxPid;
    if (pid === undefined) return this.#killRunsc();
    send(pid, "SIGKILL");
    this.#host.settings.ports.clock.after(REAP_MS, () => this.#killRunsc());
  }

  #killRunsc(): void {
    if (!this.#hasLeft) this.#process.kill("SIGKILL");
  }

  /** A runsc that was killed leaves what it kept. */
  async #sweep(exit: Exit): Promise<Exit> {
    if (exit.kind === "signal") await callRunsc(this.#host, ["delete", "--force", this.id]).catch(() => undefined);
    this.#exit = exit;
    this.stdin.destroy();
    rmSync(this.#host.workspace.bundleOf(this.id), { recursive: true, force: true });
    return exit;
  }
}

/** A shell, and runsc after it, tell of a signal by a code above 128. 128 itself is runsc's own for what it could not do. */
function exitOf(code: number): Exit {
  return code > 128 ? { kind: "signal", signal: SIGNALS.get(code - 128) ?? `signal ${code - 128}` } : { kind: "code", code };
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has gone already.
  }
}

function unstarted(cause: unknown): HoldfastError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return new HoldfastError("resource_exhausted", "runtime: this host cannot start another sandbox now; retry later", {
    cause,
    details: { code },
  });
}
