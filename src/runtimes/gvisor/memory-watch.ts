/**
 * Looks at the memory of a sandbox from time to time. gVisor enforces no limit of memory by itself and its cgroup may not be the host's to
 * make; but all memory of what runs inside is one file of the sandbox's process, whose blocks can be counted.
 */

import { readdirSync, readlinkSync, statSync } from "node:fs";
import type { Clock, Timer } from "../../base/ports.ts";

const LOOK_MS = 200;
const BLOCK_BYTES = 512;

/** Watches one sandbox until it is disposed of. */
export class MemoryWatch implements Disposable {
  readonly #clock: Clock;
  readonly #pidOf: () => number | undefined;
  readonly #bytesMax: number;
  readonly #onOver: () => void;
  #file: string | undefined;
  #timer: Timer | undefined;

  /** Calls `onOver` once, when there are more than `bytesMax`. */
  constructor(clock: Clock, pidOf: () => number | undefined, bytesMax: number, onOver: () => void) {
    this.#clock = clock;
    this.#pidOf = pidOf;
    this.#bytesMax = bytesMax;
    this.#onOver = onOver;
    this.#wait();
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel();
  }

  #wait(): void {
    this.#timer = this.#clock.after(LOOK_MS, () => {
      if ((this.#bytes() ?? 0) > this.#bytesMax) this.#onOver();
      else this.#wait();
    });
  }

  #bytes(): number | undefined {
    try {
      this.#file ??= memoryFileOf(this.#pidOf());
      return this.#file === undefined ? undefined : statSync(this.#file).blocks * BLOCK_BYTES;
    } catch {
      // It has gone, or is about to be there.
      return undefined;
    }
  }
}

function memoryFileOf(pid: number | undefined): string | undefined {
  if (pid === undefined) return undefined;
  const folder = `/proc/${pid}/fd`;
  const name = readdirSync(folder).find((fd) => readlinkSync(`${folder}/${fd}`).startsWith("/memfd:runsc-memory"));
  return name === undefined ? undefined : `${folder}/${name}`;
}
