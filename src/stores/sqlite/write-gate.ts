/**
 * Between the store and its writer: what a failed write means for the ones after it.
 *
 * A fault is logged when it begins and when it is over, not at every write that meets it.
 */

import { toHoldfastError, type HoldfastError, type Log } from "../../base/index.ts";
import type { WriteList } from "./statements.ts";
import { probeList } from "./write-list.ts";
import type { WriterLink } from "./writer-link.ts";

/** The file that is written. */
export interface WrittenFile {
  /** Throws a fault that lasts where the file is not there any more. */
  requireThere(): void;
}

/** Lets writes through while the file can be trusted. */
export class WriteGate {
  readonly #link: WriterLink;
  readonly #file: WrittenFile;
  readonly #log: Log;
  /** The last write's fault, if it passes by itself. */
  #passing: HoldfastError | undefined;
  /** The fault after which nothing is written any more. */
  #lasting: HoldfastError | undefined;

  constructor(link: WriterLink, file: WrittenFile, log: Log) {
    this.#link = link;
    this.#file = file;
    this.#log = log;
  }

  /** Whether lists are to be staged. */
  get stages(): boolean {
    return this.#link.stage !== undefined && this.#lasting === undefined;
  }

  /** Begins with the list of the next `write`, which must follow. */
  stage(list: WriteList): void {
    this.#link.stage?.(list);
  }

  /** Makes `list` durable, whole or not at all. Throws or rejects with a HoldfastError where it could not. */
  write(list: WriteList): Promise<void> | void {
    if (this.#lasting !== undefined) throw this.#lasting;
    try {
      const durable = this.#link.write(list);
      if (durable === undefined) return this.#succeeded();
      return durable.then(
        () => this.#succeeded(),
        (error: unknown) => this.#failed(error),
      );
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** Rejects with what keeps changes from being written. After a fault that passes, it tries. */
  async ready(): Promise<void> {
    if (this.#lasting !== undefined) throw this.#lasting;
    try {
      this.#file.requireThere();
    } catch (error) {
      this.#failed(error);
    }
    if (this.#passing !== undefined) await this.write(probeList());
  }

  async close(): Promise<void> {
    await this.#link.close();
  }

  #succeeded(): void {
    if (this.#passing === undefined) return;
    this.#passing = undefined;
    this.#log.log("info", "journal: changes are written again");
  }

  #failed(error: unknown): never {
    const fault = toHoldfastError(error);
    if (this.#passing?.code !== fault.code) {
      const cause = fault.cause instanceof Error ? fault.cause.message : undefined;
      this.#log.log("error", "journal: changes cannot be written", { code: fault.code, ...fault.details, cause });
    }
    if (fault.details?.lasts === true) this.#lasting = fault;
    else this.#passing = fault;
    throw fault;
  }
}
