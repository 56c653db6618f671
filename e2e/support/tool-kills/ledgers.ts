/**
 * The ledgers of the tools: files that say what took effect, written by the tools alone and read by nobody but the checker.
 *
 * Invariants:
 * - `always` and `attempts` get one line for each run of a tool, in one write: a process that is killed leaves whole lines.
 * - `once` gets an entry by its key where there is none. That is atomic between processes (a hard link either is made or is there), since a tool that
 *   outlives a killed server may run beside its successor.
 * - An effect is on the disk before the tool answers.
 */

import { hash, randomUUID } from "node:crypto";
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readdirSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** One line: which call, and under which key its tool was told to act. */
export interface LedgerLine {
  readonly mark: string;
  readonly key: string;
}

/** What the ledgers say. */
export interface LedgerLines {
  /** The effects of the tools that are idempotent. */
  readonly once: readonly LedgerLine[];
  /** The runs of those tools, of which some found their effect done. */
  readonly attempts: readonly LedgerLine[];
  /** The effects of the others. */
  readonly always: readonly LedgerLine[];
}

/** The longest pause before and after an effect: time for a kill to come. */
const PAUSE_MS_MAX = 16;

/** The ledgers in a folder, for tools that write them. */
export class Ledgers {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(join(folder, "once"), { recursive: true });
  }

  /** A new line, whatever is there. */
  async always(line: LedgerLine): Promise<void> {
    await this.#around(line, () => this.#append("always", line));
  }

  /** An entry, unless the key has one. */
  async once(line: LedgerLine): Promise<void> {
    this.#append("attempts", line);
    await this.#around(line, () => this.#enter(line));
  }

  #append(name: "always" | "attempts", line: LedgerLine): void {
    writeDurably(join(this.#folder, `${name}.jsonl`), "a", line);
  }

  #enter(line: LedgerLine): void {
    const path = join(this.#folder, "once", hash("sha256", line.key));
    const draft = join(this.#folder, `draft-${randomUUID()}`);
    writeDurably(draft, "wx", line);
    try {
      linkSync(draft, path);
    } catch (error) {
      if (!(error instanceof Error) || !("code" in error) || error.code !== "EEXIST") throw error;
    } finally {
      unlinkSync(draft);
    }
  }

  /** The effect, between two pauses that follow from its mark. */
  async #around({ mark }: LedgerLine, effect: () => void): Promise<void> {
    const [before = 0, after = 0] = hash("sha256", mark, "buffer");
    await pause(before % PAUSE_MS_MAX);
    effect();
    await pause(after % PAUSE_MS_MAX);
  }
}

/** What the ledgers in a folder say. */
export function readLedgers(folder: string): LedgerLines {
  const once = readdirSync(join(folder, "once")).map((name) => readFileSync(join(folder, "once", name), "utf8"));
  return { once: linesOf(once.join("")), attempts: linesOf(textOf(folder, "attempts")), always: linesOf(textOf(folder, "always")) };
}

function writeDurably(path: string, flag: "a" | "wx", line: LedgerLine): void {
  const file = openSync(path, flag);
  try {
    writeSync(file, `${JSON.stringify(line)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function linesOf(text: string): readonly LedgerLine[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as LedgerLine);
}

/** A ledger that nobody wrote to yet is empty. */
function textOf(folder: string, name: "always" | "attempts"): string {
  const path = join(folder, `${name}.jsonl`);
  return readdirSync(folder).includes(`${name}.jsonl`) ? readFileSync(path, "utf8") : "";
}
