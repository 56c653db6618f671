/**
 * What a chat has done in one session, on disk: so that a chat that was killed runs nothing twice and gives what it had.
 *
 * Invariants:
 * - That a call began is durable before it begins; its outcome is durable before it is sent.
 * - A line is whole or it is the last one and passed over.
 * - Calls are those of one turn. They are forgotten when it is over.
 */

import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { kept } from "./state-folder.ts";
import type { ChangeMark, ToolOutcome } from "./tools/index.ts";

/** A line of the file. */
type Entry =
  /** A message that was given; its turn may have begun or not. */
  | { readonly kind: "message"; readonly id: string; readonly text: string }
  /** A person allowed this call. */
  | { readonly kind: "allowed"; readonly turn: string; readonly call: string }
  /** A person allowed this tool for the session. */
  | { readonly kind: "always"; readonly tool: string }
  | { readonly kind: "began"; readonly turn: string; readonly call: string; readonly tool: string; readonly mark?: ChangeMark | undefined }
  | { readonly kind: "ended"; readonly turn: string; readonly call: string; readonly outcome: ToolOutcome };

/** What is known of a call. */
export type KnownCall =
  | { readonly kind: "began"; readonly tool: string; readonly mark: ChangeMark | undefined }
  | { readonly kind: "ended"; readonly outcome: ToolOutcome };

export class Ledger implements Disposable {
  readonly #path: string;
  #file: number;
  readonly #calls = new Map<string, KnownCall>();
  readonly #allowed = new Set<string>();
  readonly #always = new Set<string>();
  #message: { readonly id: string; readonly text: string } | undefined;

  private constructor(path: string, entries: readonly Entry[]) {
    this.#path = path;
    for (const entry of entries) this.#take(entry);
    this.#file = this.#rewritten();
  }

  /** Opens the ledger of a session, or begins it. Throws FAILED_PRECONDITION where it cannot be kept, as every change does. */
  static open(path: string): Ledger {
    return kept(() => {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      return new Ledger(path, readEntries(path));
    });
  }

  /** The last message that was given, unless its turn is known to be over. */
  get message(): { readonly id: string; readonly text: string } | undefined {
    return this.#message;
  }

  /** The tools that a person allowed for the session. */
  get always(): ReadonlySet<string> {
    return this.#always;
  }

  callOf(turn: string, call: string): KnownCall | undefined {
    return this.#calls.get(keyOf(turn, call));
  }

  isAllowed(turn: string, call: string): boolean {
    return this.#allowed.has(keyOf(turn, call));
  }

  giveMessage(id: string, text: string): void {
    this.#add({ kind: "message", id, text });
  }

  allow(turn: string, call: string): void {
    this.#add({ kind: "allowed", turn, call });
  }

  allowAlways(tool: string): void {
    this.#add({ kind: "always", tool });
  }

  begin(turn: string, call: string, tool: string, mark: ChangeMark | undefined): void {
    this.#add({ kind: "began", turn, call, tool, mark });
  }

  end(turn: string, call: string, outcome: ToolOutcome): void {
    this.#add({ kind: "ended", turn, call, outcome });
  }

  /** The turn is over: nothing of it will be asked again. */
  endTurn(): void {
    if (this.#calls.size + this.#allowed.size === 0 && this.#message === undefined) return;
    this.#calls.clear();
    this.#allowed.clear();
    this.#message = undefined;
    const before = this.#file;
    this.#file = kept(() => this.#rewritten());
    closeSync(before);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }

  #add(entry: Entry): void {
    kept(() => writeDurably(this.#file, [entry]));
    this.#take(entry);
  }

  #take(entry: Entry): void {
    switch (entry.kind) {
      case "message":
        this.#message = { id: entry.id, text: entry.text };
        return;
      case "allowed":
        this.#allowed.add(keyOf(entry.turn, entry.call));
        return;
      case "always":
        this.#always.add(entry.tool);
        return;
      case "began":
        this.#calls.set(keyOf(entry.turn, entry.call), { kind: "began", tool: entry.tool, mark: entry.mark });
        return;
      case "ended":
        this.#calls.set(keyOf(entry.turn, entry.call), { kind: "ended", outcome: entry.outcome });
        return;
    }
  }

  /** The file anew, with what still counts, in the place of the old one; open for more. */
  #rewritten(): number {
    const fresh = `${this.#path}.new`;
    const file = openSync(fresh, "w", 0o600);
    try {
      writeDurably(file, [...this.#entries()]);
      renameSync(fresh, this.#path);
      return file;
    } catch (error) {
      closeSync(file);
      throw error;
    }
  }

  *#entries(): Generator<Entry, void, undefined> {
    for (const tool of this.#always) yield { kind: "always", tool };
    if (this.#message !== undefined) yield { kind: "message", ...this.#message };
    for (const key of this.#allowed) yield { kind: "allowed", ...partsOf(key) };
    for (const [key, known] of this.#calls) {
      if (known.kind === "began") yield { ...partsOf(key), ...known };
      else yield { ...partsOf(key), ...known };
    }
  }
}

/** Ids are texts of others: a line break cannot be in one that came over the wire as an id of ours, and the first one parts the two. */
function keyOf(turn: string, call: string): string {
  return `${turn}\n${call}`;
}

function partsOf(key: string): { readonly turn: string; readonly call: string } {
  const at = key.indexOf("\n");
  return { turn: key.slice(0, at), call: key.slice(at + 1) };
}

function writeDurably(file: number, entries: readonly Entry[]): void {
  if (entries.length === 0) return;
  const bytes = Buffer.from(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
  fsyncSync(file);
}

function readEntries(path: string): readonly Entry[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
  return text.split("\n").flatMap((line) => {
    const entry = entryOf(line);
    return entry === undefined ? [] : [entry];
  });
}

function entryOf(line: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const isEntry = typeof value === "object" && value !== null && "kind" in value;
    // Only this module writes the file, and what it wrote is whole or no JSON.
    return isEntry ? (value as Entry) : undefined;
  } catch {
    return undefined;
  }
}
