/** The text that a person is writing: editing, several lines, and what was written before. Pure. */

import { graphemesOf, widthOf } from "./width.ts";
import type { Key } from "./keys.ts";

/** What is being written. */
export interface Draft {
  readonly text: string;
  /** Where the cursor stands, in UTF-16 units. */
  readonly at: number;
  /** What was written before, oldest first. */
  readonly history: readonly string[];
  /** The place in the history that is shown; its length for what is new. */
  readonly place: number;
  /** What was new when the history was entered. */
  readonly fresh: string;
}

/** Lines that are remembered. */
const HISTORY_MAX = 500;
/** A text that is longer is not taken: it is more than a person writes, and all of it is drawn. */
export const DRAFT_CHARS_MAX = 262_144;

/** An empty draft. */
export function newDraft(history: readonly string[] = []): Draft {
  const kept = history.slice(-HISTORY_MAX);
  return { text: "", at: 0, history: kept, place: kept.length, fresh: "" };
}

/** The draft with this text, the cursor at its end. */
export function withText(draft: Draft, text: string): Draft {
  return { ...draft, text, at: text.length };
}

/** What a key does to the draft; a text once it is finished. */
export function edited(draft: Draft, key: Key): { readonly draft: Draft; readonly submitted?: string } {
  if (key.kind === "enter") return entered(draft);
  return { draft: moved(draft, key) };
}

function entered(draft: Draft): { readonly draft: Draft; readonly submitted?: string } {
  // A backslash at the end of the line asks for another line.
  if (draft.text.slice(0, draft.at).endsWith("\\")) return { draft: inserted(cut(draft, draft.at - 1, draft.at), "\n") };
  const submitted = draft.text;
  if (submitted.trim() === "") return { draft: withText(draft, "") };
  const history = draft.history.at(-1) === submitted ? draft.history : [...draft.history, submitted];
  return { draft: newDraft(history), submitted };
}

function moved(draft: Draft, key: Key): Draft {
  const { text, at } = draft;
  switch (key.kind) {
    case "text":
    case "paste":
      return inserted(draft, key.text);
    case "newline":
      return inserted(draft, "\n");
    case "backspace":
      return cut(draft, before(text, at), at);
    case "delete":
      return cut(draft, at, after(text, at));
    case "cut-word":
      return cut(draft, wordStart(text, at), at);
    case "cut-to-start":
      return cut(draft, lineStart(text, at), at);
    case "cut-to-end":
      return cut(draft, at, lineEnd(text, at));
    case "left":
      return { ...draft, at: before(text, at) };
    case "right":
      return { ...draft, at: after(text, at) };
    case "word-left":
      return { ...draft, at: wordStart(text, at) };
    case "word-right":
      return { ...draft, at: wordEnd(text, at) };
    case "home":
      return { ...draft, at: lineStart(text, at) };
    case "end":
      return { ...draft, at: lineEnd(text, at) };
    case "up":
      return lineStart(text, at) > 0
        ? { ...draft, at: sameColumn(text, at, lineStart(text, lineStart(text, at) - 1)) }
        : recalled(draft, -1);
    case "down":
      return lineEnd(text, at) < text.length ? { ...draft, at: sameColumn(text, at, lineEnd(text, at) + 1) } : recalled(draft, 1);
    case "enter":
    case "tab":
    case "escape":
    case "interrupt":
    case "end-of-input":
    case "redraw":
    case "suspend":
      return draft;
  }
}

function inserted(draft: Draft, piece: string): Draft {
  const { text, at } = draft;
  if (text.length + piece.length > DRAFT_CHARS_MAX) return draft;
  return { ...draft, text: text.slice(0, at) + piece + text.slice(at), at: at + piece.length };
}

function cut(draft: Draft, from: number, to: number): Draft {
  return { ...draft, text: draft.text.slice(0, from) + draft.text.slice(to), at: from };
}

function recalled(draft: Draft, step: 1 | -1): Draft {
  const { history, place, text } = draft;
  const next = place + step;
  if (next < 0 || next > history.length) return draft;
  const fresh = place === history.length ? text : draft.fresh;
  return { ...withText(draft, history[next] ?? fresh), place: next, fresh };
}

function before(text: string, at: number): number {
  return at - (graphemesOf(text.slice(lineStart(text, at), at)).at(-1)?.length ?? (at > 0 ? 1 : 0));
}

function after(text: string, at: number): number {
  return at + (graphemesOf(text.slice(at, lineEnd(text, at)))[0]?.length ?? (at < text.length ? 1 : 0));
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at - 1) + 1;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

function wordStart(text: string, at: number): number {
  return at - (/\S*\s*$/.exec(text.slice(0, at))?.[0].length ?? 0);
}

function wordEnd(text: string, at: number): number {
  return at + (/^\s*\S*/.exec(text.slice(at))?.[0].length ?? 0);
}

/** The place in the line that begins at `start` with the column that `at` has in its own. */
function sameColumn(text: string, at: number, start: number): number {
  return Math.min(start + at - lineStart(text, at), lineEnd(text, start));
}

/** The rows of a draft behind its prompt, and where the cursor stands. */
export interface DraftView {
  readonly rows: readonly string[];
  readonly row: number;
  readonly column: number;
}

/** Lays the draft out; every row has room for `columns`. */
export function draftView({ text, at }: Pick<Draft, "text" | "at">, columns: number, prompt: string): DraftView {
  const room = Math.max(4, columns - 1);
  const indent = " ".repeat(widthOf(prompt));
  const rows = [prompt];
  let cursor = { row: 0, column: widthOf(prompt) };
  let used = widthOf(prompt);
  let offset = 0;
  const newRow = (): void => {
    rows.push(indent);
    used = indent.length;
  };
  for (const grapheme of [...graphemesOf(text), ""]) {
    const width = grapheme === "\t" ? 2 : widthOf(grapheme);
    if (grapheme !== "\n" && used + width > room) newRow();
    if (offset === at) cursor = { row: rows.length - 1, column: used };
    if (grapheme === "\n") newRow();
    else {
      rows[rows.length - 1] += grapheme === "\t" ? "  " : shown(grapheme);
      used += width;
    }
    offset += grapheme.length;
  }
  return { rows, ...cursor };
}

function shown(grapheme: string): string {
  // oxlint-disable-next-line no-control-regex -- what was pasted may hold sequences that would move the cursor.
  return grapheme.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd");
}
