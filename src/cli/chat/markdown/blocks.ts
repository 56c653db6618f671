/** Blocks of Markdown as lines of a terminal. Pure. */

import { Lexer, type Token, type Tokens } from "marked";
import { plain } from "../../plain.ts";
import { widthOf } from "../terminal/width.ts";
import { inlineSpans, type Marks } from "./inline.ts";
import { span, styled, textOf, type Line, type Span } from "./spans.ts";
import { NO_INDENT, wrapped, type Indent } from "./wrap.ts";

/** How wide the screen is and how it shows marks. */
export interface Layout extends Marks {
  readonly columns: number;
}

/** A line that is deeper in quotes and lists than anybody writes; reading and drawing each level takes a piece of the stack. */
const TOO_DEEP = /^(?:[ \t]*(?:>|(?:[-*+]|\d{1,9}[.)])[ \t])){33}/m;

/** The blocks in a text. One that is nested too deep is a paragraph as it is written. */
export function blocksOf(source: string): readonly Token[] {
  if (!TOO_DEEP.test(source)) return new Lexer({ gfm: true }).lex(source);
  const text: Tokens.Text = { type: "text", raw: source, text: source, escaped: false };
  return [{ type: "paragraph", raw: source, text: source, tokens: [text] }];
}

/** The lines of a text of Markdown, blocks set off by blank lines. */
export function markdownLines(source: string, layout: Layout, indent: Indent = NO_INDENT): readonly Line[] {
  return blockLines(blocksOf(source), layout, indent);
}

/** The lines of one line of code. */
export function codeLines(text: string, { columns }: Layout): readonly Line[] {
  const line = plain(text).replaceAll("\t", "    ");
  return line.length + 4 <= columns ? [[span(`    ${line}`, "cyan")]] : [[span("    "), span(line, "cyan")]];
}

function blockLines(tokens: readonly Token[], layout: Layout, indent: Indent): readonly Line[] {
  const lines: Line[] = [];
  for (const token of tokens) {
    const block = linesOf(token, layout, lines.length === 0 ? indent : { first: indent.rest, rest: indent.rest });
    if (block.length === 0) continue;
    if (lines.length > 0 && token.type !== "text") lines.push(textOf(indent.rest).trim() === "" ? [] : indent.rest);
    lines.push(...block);
  }
  return lines;
}

function linesOf(token: Tokens.Generic, layout: Layout, indent: Indent): readonly Line[] {
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "heading":
      return wrapped(headingSpans(token as Tokens.Heading, layout), layout.columns, indent);
    case "hr":
      return [[...indent.first, span("─".repeat(Math.max(3, Math.min(layout.columns, 60) - widthOf(textOf(indent.first)))), "dim")]];
    case "code":
      return plain(String(token["text"]))
        .split("\n")
        .map((line, index) => [...(index === 0 ? indent.first : indent.rest), ...(codeLines(line, layout)[0] ?? [])]);
    case "blockquote":
      return blockLines(token.tokens ?? [], layout, {
        first: [...indent.first, span("│ ", "dim")],
        rest: [...indent.rest, span("│ ", "dim")],
      });
    case "list":
      return (token as Tokens.List).items.flatMap((item, index) =>
        itemLines(token as Tokens.List, item, index, layout, index === 0 ? indent : { first: indent.rest, rest: indent.rest }),
      );
    case "table":
      return tableLines(token as Tokens.Table, layout).map((line, index) => [...(index === 0 ? indent.first : indent.rest), ...line]);
    case "html":
      return wrapped([span(plain(token.raw.trimEnd()), "dim")], layout.columns, indent);
    default:
      return wrapped(inlineSpans(token.tokens ?? [token], layout), layout.columns, indent);
  }
}

function headingSpans({ depth, tokens }: Tokens.Heading, layout: Layout): Line {
  const spans = styled(inlineSpans(tokens, layout), "bold");
  if (layout.keep) return [span(`${"#".repeat(depth)} `), ...spans];
  return depth === 1 ? styled(spans, "underline") : spans;
}

function itemLines(list: Tokens.List, item: Tokens.ListItem, index: number, layout: Layout, indent: Indent): readonly Line[] {
  const number = list.ordered ? `${(list.start === "" ? 1 : list.start) + index}. ` : "• ";
  const mark = item.task ? `${number}[${item.checked === true ? "x" : " "}] ` : number;
  const hanging: Indent = { first: [...indent.first, span(mark)], rest: [...indent.rest, span(" ".repeat(widthOf(mark)))] };
  const tokens = item.tokens.filter(({ type }) => type !== "checkbox");
  const lines = blockLines(tokens, layout, hanging).filter((line) => item.loose || textOf(line).trim() !== "");
  return lines.length === 0 ? [hanging.first] : lines;
}

function tableLines({ header, rows, align }: Tokens.Table, layout: Layout): readonly Line[] {
  const cells = [header, ...rows].map((row) => row.map(({ tokens }) => inlineSpans(tokens, layout)));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => widthOf(textOf(row[column] ?? [])))));
  const [head = [], ...body] = cells.map((row) =>
    widths.flatMap((width, column) => cellSpans(row[column] ?? [], width, align[column], column)),
  );
  const rule = span(widths.map((width) => "─".repeat(width)).join("─┼─"), "dim");
  return [styled(head, "bold"), [rule], ...body];
}

function cellSpans(cell: Line, width: number, align: "center" | "left" | "right" | null | undefined, column: number): readonly Span[] {
  const room = width - widthOf(textOf(cell));
  const before = align === "right" ? room : align === "center" ? Math.floor(room / 2) : 0;
  return [...(column === 0 ? [] : [span(" │ ", "dim")]), span(" ".repeat(before)), ...cell, span(" ".repeat(room - before))];
}
