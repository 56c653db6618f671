/** What happened in a world, line by line: what a person reads after a failure, and what two runs of one seed must have alike. */

import type { Digest } from "../../base/index.ts";

/** The lines of one run. */
export class Trace {
  readonly lines: string[] = [];
  readonly #nowMs: () => number;
  readonly #startMs: number;
  readonly #tell: ((line: string) => void) | undefined;

  /** `tell` is called with each line as it comes. */
  constructor(nowMs: () => number, tell: ((line: string) => void) | undefined) {
    this.#nowMs = nowMs;
    this.#startMs = nowMs();
    this.#tell = tell;
  }

  add(line: string): void {
    const timed = `${((this.#nowMs() - this.#startMs) / 1000).toFixed(3)} ${line}`;
    this.lines.push(timed);
    this.#tell?.(timed);
  }

  last(count: number): readonly string[] {
    return this.lines.slice(-count);
  }

  hash(digest: Digest): string {
    return digest.sha256Hex(this.lines.join("\n"));
  }
}
