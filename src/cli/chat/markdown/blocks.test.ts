import { describe, expect, it } from "vitest";
import { codeLines, markdownLines } from "./blocks.ts";
import { painted, UNPAINTED, type Paint } from "./spans.ts";

const marked: Paint = (style, text) => `<${style}>${text}</${style}>`;
const shown = (source: string, columns = 40, paint: Paint = UNPAINTED, keep = false): string[] =>
  markdownLines(source, { columns, keep }).map((line) => painted(line, paint));

describe("Markdown on a terminal", () => {
  it("shows emphasis, code and links as styles", () => {
    expect(shown("**b** *i* `c` ~~d~~ [t](https://e.org)", 80, marked)).toEqual([
      "<bold>b</bold> <italic>i</italic> <cyan>c</cyan> <strikethrough>d</strikethrough> <underline>t</underline><dim> (https://e.org)</dim>",
    ]);
    expect(shown("# One *two*", 80, marked)[0]).toContain("<underline><bold>One ");
  });

  it("keeps the marks where there are no styles", () => {
    expect(shown("## T\n\n**b** `c`", 80, UNPAINTED, true)).toEqual(["## T", "", "**b** `c`"]);
  });

  it("wraps words, and indents what belongs to an item", () => {
    expect(shown("1. one two three four\n2. five\n   - six seven eight", 16)).toEqual([
      "1. one two three",
      "   four",
      "2. five",
      "   • six seven",
      "     eight",
    ]);
    expect(shown("> quoted words that wrap", 14)).toEqual(["│ quoted words", "│ that wrap"]);
  });

  it("draws tables, aligned", () => {
    expect(shown("| a | bb |\n|---|---:|\n| long | 1 |")).toEqual(["a    │ bb", "─────┼───", "long │  1"]);
  });

  it("shows tasks, rules and code", () => {
    expect(shown("- [x] done\n- [ ] not")).toEqual(["• [x] done", "• [ ] not"]);
    expect(shown("---", 10)).toEqual(["──────────"]);
    expect(shown("```ts\nlet a;\n```")).toEqual(["    let a;"]);
    expect(codeLines("\tx", { columns: 40, keep: false }).map((line) => painted(line, UNPAINTED))).toEqual(["        x"]);
  });

  it("lets nothing of the text move the cursor", () => {
    const text = shown("a \u001b[2J **b\u009b**", 80).join("");
    expect(Array.from(text).filter((character) => character < " " || character === "\u009b")).toEqual([]);
    expect(text).toContain("\\u001b[2J");
  });

  it("takes what is nested beyond all measure for a text", () => {
    for (const mark of [">", "> ", "- ", "1. ", "* > "]) {
      expect(
        shown(`${mark.repeat(4_000)}a`, 40)
          .join(" ")
          .replaceAll(" ", ""),
      ).toBe(`${mark.repeat(4_000)}a`.replaceAll(" ", ""));
    }
    expect(shown(`${"> ".repeat(16)}a`, 80)).toEqual([`${"│ ".repeat(16)}a`]);
    expect(shown("-".repeat(100), 10)).toEqual(["──────────"]);
  });

  it("shows what is not finished as it is so far", () => {
    expect(shown("a **bo")).toEqual(["a **bo"]);
    expect(shown("| a | b |\n|---|")).toEqual(["| a | b | |---|"]);
  });
});
