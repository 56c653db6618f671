/** Where the chat keeps what it must know after it was killed: one folder for each folder that it was run in. */

import { mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { HoldfastError } from "../../base/errors.ts";
import { nodeDigest } from "../../node/index.ts";

/** The chat that was last run in a folder. */
export interface LastChat {
  readonly session: string;
}

/** Lines of what a person wrote that are kept. */
const HISTORY_MAX = 500;

export class StateFolder {
  readonly #folder: string;

  /** The state of `folder`. It is under XDG_STATE_HOME, or ~/.local/state. */
  constructor(folder: string, environment: Readonly<Record<string, string | undefined>>) {
    const home = environment["XDG_STATE_HOME"];
    const state = home === undefined || home === "" ? join(homedir(), ".local", "state") : home;
    this.#folder = join(state, "holdfast", "chat", nodeDigest.sha256Hex(realpathSync(folder)).slice(0, 24));
  }

  /** The file of a session's ledger. */
  ledgerPath(session: string): string {
    return join(this.#folder, `${nodeDigest.sha256Hex(session).slice(0, 24)}.jsonl`);
  }

  /** The chat that was last run here; undefined where there was none. */
  get last(): LastChat | undefined {
    const value = this.#read("last.json");
    const isLast = typeof value === "object" && value !== null && "session" in value && typeof value.session === "string";
    return isLast ? (value as LastChat) : undefined;
  }

  /** Keeps which chat it was. Throws FAILED_PRECONDITION where it cannot. */
  keepLast(last: LastChat): void {
    this.#write("last.json", last);
  }

  /** What was written at the prompt before, oldest first. */
  get history(): readonly string[] {
    const value = this.#read("history.json");
    return Array.isArray(value) ? value.filter((line): line is string => typeof line === "string").slice(-HISTORY_MAX) : [];
  }

  /** Keeps what was written, where it can: nobody is stopped because it cannot. */
  keepHistory(lines: readonly string[]): void {
    try {
      this.#write("history.json", lines.slice(-HISTORY_MAX));
    } catch {
      // The next chat does without it.
    }
  }

  #read(name: string): unknown {
    try {
      return JSON.parse(readFileSync(join(this.#folder, name), "utf8"));
    } catch {
      // What was never written, or cannot be read, is not remembered.
      return undefined;
    }
  }

  #write(name: string, value: unknown): void {
    kept(() => {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      const path = join(this.#folder, name);
      writeFileSync(`${path}.new`, `${JSON.stringify(value)}\n`, { mode: 0o600, flush: true });
      renameSync(`${path}.new`, path);
    });
  }
}

/** Does what keeps the chat's state. Throws FAILED_PRECONDITION for whatever the file system says. */
export function kept<Result>(keep: () => Result): Result {
  try {
    return keep();
  } catch (error) {
    const message = "XDG_STATE_HOME: the chat cannot keep there what it must know after it was killed; name a folder that can be written";
    throw new HoldfastError("failed_precondition", message, { cause: error });
  }
}
