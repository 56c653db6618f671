/** Markdown within a block as spans. Pure. */

import type { Token, Tokens } from "marked";
import { plain } from "../../plain.ts";
import { span, styled, type Line, type TextStyle } from "./spans.ts";

/** How marks are shown. */
export interface Marks {
  /** Whether the marks of Markdown stay in the text: where a screen has no styles, they are all that tells emphasis. */
  readonly keep: boolean;
}

/** The spans of inline tokens. */
export function inlineSpans(tokens: readonly Token[], marks: Marks): Line {
  return tokens.flatMap((token) => spansOf(token as Tokens.Generic, marks));
}

function spansOf(token: Tokens.Generic, marks: Marks): Line {
  const inner = (): Line => (token.tokens === undefined ? [span(plain(decoded(token["text"])))] : inlineSpans(token.tokens, marks));
  switch (token.type) {
    case "strong":
      return emphasised(inner(), "bold", "**", marks);
    case "em":
      return emphasised(inner(), "italic", "*", marks);
    case "del":
      return emphasised(inner(), "strikethrough", "~~", marks);
    case "codespan": {
      const code = plain(decoded(token["text"]));
      return [span(marks.keep ? `\`${code}\`` : code, "cyan")];
    }
    case "br":
      return [span("\n")];
    case "link":
    case "image":
      return linked(inner(), plain(typeof token["href"] === "string" ? token["href"] : ""));
    case "html":
      return [span(plain(token.raw), "dim")];
    default:
      // A single line break in a paragraph is a space.
      return inner().map(({ text, styles }) => span(token.tokens === undefined ? text.replaceAll("\n", " ") : text, ...styles));
  }
}

function emphasised(spans: Line, style: TextStyle, mark: string, { keep }: Marks): Line {
  return styled(keep ? [span(mark), ...spans, span(mark)] : spans, style);
}

function linked(spans: Line, address: string): Line {
  const isSame = spans.map(({ text }) => text).join("") === address.replace(/^mailto:/, "");
  return isSame || address === "" ? styled(spans, "underline") : [...styled(spans, "underline"), span(` (${address})`, "dim")];
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", apos: "'", nbsp: " " };

/** The usual entities as what they stand for. */
function decoded(text: unknown): string {
  return (typeof text === "string" ? text : "").replace(
    /&(amp|lt|gt|quot|#39|apos|nbsp);/g,
    (whole, name: string) => ENTITIES[name] ?? whole,
  );
}
