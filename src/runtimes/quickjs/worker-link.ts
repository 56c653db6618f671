/**
 * A worker thread as the runtime sees it.
 *
 * Invariants:
 * - Every call is answered, or rejects once the thread is gone.
 * - A thread that answers nothing for too long is ended: an engine's own operation on a large value cannot be interrupted from inside. The
 *   VMs on it are lost; their sessions go on from what was captured last.
 */

import { Worker } from "node:worker_threads";
import { HoldfastError, type Clock, type Log, type Timer } from "../../base/index.ts";
import type { Fault, PackedImage, WorkerAnswers, WorkerCall, WorkerReply, WorkerRequest, WorkerStart } from "./messages.ts";

/** What a link is made of. */
export interface WorkerLinkOptions {
  readonly start: WorkerStart;
  readonly name: string;
  readonly clock: Clock;
  readonly log: Log;
  /** How long the thread may answer nothing. */
  readonly hungAfterMs: number;
}

/** Dropped VMs that wait for their memory to be given back, at most; and how long a thread must have been idle for it. */
const DROPS_MAX = 128;
const COLLECT_AFTER_MS = 200;

interface Waiting {
  resolve(answer: WorkerAnswers[WorkerRequest["kind"]]): void;
  reject(error: HoldfastError): void;
}

/** The thread's file beside this one, be this TypeScript or what was built of it. */
function workerUrl(): URL {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return new URL(`./worker.${extension}`, import.meta.url);
}

/** A thread that holds VMs. */
export class WorkerLink {
  readonly name: string;
  /** Called once, when the thread is gone, for each VM on it. */
  readonly lost = new Map<number, (fault: HoldfastError) => void>();
  readonly #options: WorkerLinkOptions;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #bases = new Map<string, Promise<unknown>>();
  #calls = 0;
  #watchdog: Timer | undefined;
  #isClosing = false;
  #drops = 0;
  #collection: Timer | undefined;
  #gone: HoldfastError | undefined;

  constructor(options: WorkerLinkOptions) {
    this.#options = options;
    this.name = options.name;
    // The process's own flags may be for its own program alone, and would keep the thread from starting.
    this.#worker = new Worker(workerUrl(), { workerData: options.start, name: options.name, execArgv: [] });
    this.#worker.unref();
    this.#worker.on("message", (reply: WorkerReply) => this.#replied(reply));
    this.#worker.on("error", (error) => this.#end("a worker thread of the sandbox ended by an error", error));
    this.#worker.on("exit", () => this.#end("a worker thread of the sandbox ended", undefined));
  }

  get isGone(): boolean {
    return this.#gone !== undefined;
  }

  /** Asks and waits for the answer. Rejects with the fault's code, or UNAVAILABLE where the thread is gone. */
  call<Kind extends WorkerRequest["kind"]>(
    request: Extract<WorkerRequest, { readonly kind: Kind }>,
    handedOver: readonly ArrayBuffer[] = [],
  ): Promise<WorkerAnswers[Kind]> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    const call = ++this.#calls;
    if (request.kind === "drop") this.#dropped();
    const message: WorkerCall = { call, request };
    this.#worker.postMessage(message, handedOver);
    if (this.#waiting.size === 0) this.#watch();
    return new Promise((resolve, reject) => {
      this.#waiting.set(call, { resolve: (answer) => resolve(answer as WorkerAnswers[Kind]), reject });
    });
  }

  /** Makes sure that the thread has a base. */
  async useBase(base: string, image: PackedImage): Promise<void> {
    let sent = this.#bases.get(base);
    if (sent === undefined) {
      sent = this.call({ kind: "base", base, image });
      this.#bases.set(base, sent);
    }
    await sent;
  }

  /** Ends the thread and everything on it. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#end("the sandbox was closed", undefined);
    await this.#worker.terminate();
  }

  /** The memory of dropped VMs is given back when the thread has nothing else to do, or when there are many. */
  #dropped(): void {
    this.#drops++;
    this.#collection?.cancel();
    const isMany = this.#drops >= DROPS_MAX;
    this.#collection = this.#options.clock.after(isMany ? 0 : COLLECT_AFTER_MS, () => {
      if (!isMany && this.#waiting.size > 0) return this.#dropped();
      this.#drops = 0;
      this.call({ kind: "collect" }).catch(() => undefined);
    });
  }

  /** While an answer is awaited the thread keeps the process alive, and only then. */
  #watch(): void {
    this.#worker.ref();
    this.#watchdog?.cancel();
    this.#watchdog = this.#options.clock.after(this.#options.hungAfterMs, () => {
      this.#end(`a worker thread of the sandbox answered nothing for ${this.#options.hungAfterMs} ms and was ended`, undefined);
    });
  }

  #replied(reply: WorkerReply): void {
    const waiting = this.#waiting.get(reply.call);
    this.#waiting.delete(reply.call);
    if (this.#waiting.size > 0) this.#watch();
    else {
      this.#watchdog?.cancel();
      this.#worker.unref();
    }
    if ("fault" in reply) waiting?.reject(errorOf(reply.fault));
    else waiting?.resolve(reply.answer);
  }

  #end(why: string, cause: unknown): void {
    if (this.#gone !== undefined) return;
    const fault = new HoldfastError("unavailable", `harness: ${why}; the turn is interrupted and can be resumed`, { cause });
    this.#gone = fault;
    this.#watchdog?.cancel();
    this.#collection?.cancel();
    if (!this.#isClosing)
      this.#options.log.log("warn", "a worker thread of the quickjs runtime is gone", { worker: this.name, vms: this.lost.size, why });
    for (const waiting of this.#waiting.values()) waiting.reject(fault);
    this.#waiting.clear();
    for (const tell of this.lost.values()) tell(fault);
    this.lost.clear();
    this.#worker.terminate().catch(() => undefined);
  }
}

/** A fault as an error of this thread. */
export function errorOf({ code, message, detail }: Fault): HoldfastError {
  return new HoldfastError(code, message, { details: { detail } });
}
