/**
 * The writer as the store sees it, in this thread or in one of its own. Both run the same `BatchWriter`.
 *
 * In this thread a batch is durable when `write` returns; the event loop waits for the disk. In a thread of its own the loop
 * goes on, for the price of a message each way.
 */

import { Worker } from "node:worker_threads";
import { HoldfastError } from "../../base/index.ts";
import { BatchWriter } from "./batch-writer.ts";
import type { WriterOptions } from "./connection.ts";
import { errorOfFault, toStoreError } from "./faults.ts";
import { packList } from "./packed-list.ts";
import type { WriteList } from "./statements.ts";
import type { WriterRequest, WriterResponse } from "./writer-protocol.ts";

/** Node 22 warns that its SQLite is experimental, in every thread that loads it. */
const QUIET: readonly string[] = ["--disable-warning=ExperimentalWarning"];

/** A writer. Faults are HoldfastErrors; `details.lasts` says whether the writer can be used again. */
export interface WriterLink {
  write(list: WriteList): Promise<void> | void;
  /** Begins with the list of the next `write`, where that is done while the caller goes on. */
  stage?(list: WriteList): void;
  close(): Promise<void>;
}

/** A writer in this thread. */
export function inlineWriter(options: WriterOptions): WriterLink {
  const writer = new BatchWriter(options);
  return {
    write: (list) => {
      try {
        writer.write(list);
      } catch (error) {
        throw toStoreError(error);
      }
    },
    close: async () => writer.close(),
  };
}

/** A writer in a thread of its own. Resolves once that thread has opened the file. */
export async function workerWriter(options: WriterOptions): Promise<WriterLink> {
  const link = new WorkerLink(options);
  await link.opened;
  return link;
}

/** The thread's file beside this one, be this TypeScript or what was built of it. */
function workerUrl(): URL {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return new URL(`./writer-worker.${extension}`, import.meta.url);
}

interface Waiting {
  resolve(): void;
  reject(error: HoldfastError): void;
}

class WorkerLink implements WriterLink {
  readonly opened: Promise<void>;
  readonly #worker: Worker;
  /** Resolves once the thread has ended and let go of the file, however it ended. */
  readonly #exited: Promise<void>;
  /** Who waits for an answer, in the order of what was asked. */
  #waiting: Waiting[] = [];
  #gone: HoldfastError | undefined;

  constructor(options: WriterOptions) {
    // The process's own flags may be for its own program alone, and would keep the thread from starting.
    this.#worker = new Worker(workerUrl(), { workerData: options, name: "journal-writer", execArgv: [...QUIET] });
    this.#worker.on("message", (response: WriterResponse) => this.#answered(response));
    this.#worker.on("error", (error) => this.#lost(error));
    this.#exited = new Promise((resolve) => this.#worker.once("exit", () => resolve()));
    this.#worker.on("exit", () => this.#lost(undefined));
    this.opened = this.#answer();
  }

  write(list: WriteList): Promise<void> {
    const packed = packList(list);
    return this.#ask({ kind: "write", list: packed }, [packed.bytes]);
  }

  stage(list: WriteList): void {
    if (this.#gone !== undefined) return;
    const packed = packList(list);
    this.#send({ kind: "stage", list: packed }, [packed.bytes]);
  }

  async close(): Promise<void> {
    // A thread that failed is told to be lost before it has closed the file.
    if (this.#gone === undefined) await this.#ask({ kind: "close" });
    this.#worker.ref();
    await this.#exited;
  }

  #ask(request: WriterRequest, handedOver: ArrayBuffer[] = []): Promise<void> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    this.#send(request, handedOver);
    return this.#answer();
  }

  #send(request: WriterRequest, handedOver: ArrayBuffer[]): void {
    this.#worker.postMessage(request, handedOver);
  }

  /** While an answer is awaited the thread keeps the process alive, and only then. */
  #answer(): Promise<void> {
    this.#worker.ref();
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  #answered(response: WriterResponse): void {
    const waiting = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#worker.unref();
    if (response.kind === "done") waiting?.resolve();
    else waiting?.reject(errorOfFault(response.fault));
  }

  /** The thread ended. What it was writing may be durable or not, so nothing more is written by this store. */
  #lost(cause: unknown): void {
    this.#gone ??= new HoldfastError("unavailable", "journal: the writer stopped; changes are refused until the server is started again", {
      details: { lasts: true },
      cause,
    });
    for (const waiting of this.#waiting.splice(0)) waiting.reject(this.#gone);
  }
}
