/**
 * The journal's file as it was opened. A file that is deleted or replaced under a process lives on for that process alone: what
 * is committed to it then is gone with the process, so it must not be acknowledged.
 */

import { statSync } from "node:fs";
import { HoldfastError } from "../../base/index.ts";

/** Knows a journal's file and the log beside it, both of which must exist when it is made. */
export class KnownFile {
  readonly #paths: readonly string[];
  readonly #identity: string | undefined;

  constructor(path: string) {
    this.#paths = [path, `${path}-wal`];
    this.#identity = this.#found();
  }

  /** Throws UNAVAILABLE, for good, unless the paths still lead to the same files. */
  requireThere(): void {
    const found = this.#found();
    if (found !== undefined && found === this.#identity) return;
    const message = "journal: the file was deleted or replaced; changes are refused until the server is started again on the right one";
    throw new HoldfastError("unavailable", message, { details: { lasts: true } });
  }

  /** Device and number of each file; undefined where one is missing or cannot be looked at. */
  #found(): string | undefined {
    let identity = "";
    try {
      for (const path of this.#paths) {
        const { dev, ino } = statSync(path, { bigint: true });
        identity += `${dev}:${ino};`;
      }
    } catch {
      return undefined;
    }
    return identity;
  }
}
