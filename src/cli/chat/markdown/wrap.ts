/** Lines broken between words. Pure. */

import { graphemesOf, widthOf } from "../terminal/width.ts";
import { span, type Line, type Span } from "./spans.ts";

/** What stands before a block's first line and before its others. */
export interface Indent {
  readonly first: Line;
  readonly rest: Line;
}

export const NO_INDENT: Indent = { first: [], rest: [] };

/** `line` as lines of at most `columns`, broken between words where that can be; a line break in a span breaks. */
export function wrapped(line: Line, columns: number, { first, rest }: Indent = NO_INDENT): readonly Line[] {
  const lines: Span[][] = [[...first]];
  const margin = (spans: Line): number => spans.reduce((sum, { text }) => sum + widthOf(text), 0);
  const room = Math.max(8, columns - Math.max(margin(first), margin(rest)));
  let used = 0;
  const breakLine = (): void => {
    trimEnd(lines.at(-1) ?? [], lines.length === 1 ? first.length : rest.length);
    lines.push([...rest]);
    used = 0;
  };
  for (const word of wordsOf(line)) {
    if (word.kind === "break") {
      breakLine();
      continue;
    }
    const width = word.spans.reduce((sum, { text }) => sum + widthOf(text), 0);
    if (word.kind === "space" && used === 0) continue;
    if (used + width > room && used > 0) {
      breakLine();
      if (word.kind === "space") continue;
    }
    for (const piece of width > room ? cutUp(word.spans, room) : [word.spans]) {
      if (used > 0 && width > room) breakLine();
      lines.at(-1)?.push(...piece);
      used += piece.reduce((sum, { text }) => sum + widthOf(text), 0);
    }
  }
  return lines.map(joined);
}

type Word = { readonly kind: "word" | "space"; readonly spans: Line } | { readonly kind: "break" };

/** Words may have several looks: `**a**b` is one. */
function wordsOf(line: Line): readonly Word[] {
  const words: Word[] = [];
  let word: Span[] = [];
  const close = (): void => {
    if (word.length > 0) words.push({ kind: "word", spans: word });
    word = [];
  };
  for (const { text, styles } of line) {
    for (const piece of text.split(/(\n|[ \t]+)/)) {
      if (piece === "") continue;
      if (/^[ \t\n]/.test(piece)) {
        close();
        words.push(piece === "\n" ? { kind: "break" } : { kind: "space", spans: [span(piece.replaceAll("\t", "  "), ...styles)] });
      } else word.push(span(piece, ...styles));
    }
  }
  close();
  return words;
}

/** A word that is longer than a line, in pieces that are not. */
function cutUp(spans: Line, columns: number): readonly Line[] {
  const pieces: Span[][] = [[]];
  let used = 0;
  for (const { text, styles } of spans) {
    for (const grapheme of graphemesOf(text)) {
      const width = widthOf(grapheme);
      if (used + width > columns) {
        pieces.push([]);
        used = 0;
      }
      pieces.at(-1)?.push(span(grapheme, ...styles));
      used += width;
    }
  }
  return pieces;
}

function trimEnd(line: Span[], from: number): void {
  for (let last = line.at(-1); line.length > from && last !== undefined && /^ *$/.test(last.text); last = line.at(-1)) line.pop();
}

/** Neighbours of the same look as one span. */
function joined(line: Line): Line {
  const spans: Span[] = [];
  for (const next of line) {
    const last = spans.at(-1);
    if (last !== undefined && last.styles.join() === next.styles.join())
      spans[spans.length - 1] = span(last.text + next.text, ...last.styles);
    else spans.push(next);
  }
  return spans;
}
