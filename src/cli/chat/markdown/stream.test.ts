import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MarkdownStream, type MarkdownBlock } from "./stream.ts";

const texts = (blocks: readonly MarkdownBlock[]): string[] => blocks.map(({ kind, text }) => `${kind}: ${text.trimEnd()}`);

/** All blocks of a text that comes in pieces of this size. */
function blocksOf(text: string, pieceChars: number): MarkdownBlock[] {
  const stream = new MarkdownStream();
  const blocks: MarkdownBlock[] = [];
  for (let at = 0; at < text.length; at += pieceChars) blocks.push(...stream.add(text.slice(at, at + pieceChars)));
  return [...blocks, ...stream.end()];
}

const PAGE =
  "# One\n\nA paragraph\nof two lines.\n\n- a\n- b\n  more\n\nAfter.\n\n```ts\nlet a;\n\nlet b;\n```\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nEnd";

describe("Markdown that arrives in pieces", () => {
  it("comes out block by block, each once it is complete", () => {
    const stream = new MarkdownStream();
    expect(stream.add("First *bl")).toEqual([]);
    expect(stream.rest?.text).toBe("First *bl");
    expect(texts(stream.add("ock*.\n\nSecond"))).toEqual(["markdown: First *block*."]);
    expect(stream.rest?.text).toBe("Second");
    expect(texts(stream.end())).toEqual(["markdown: Second"]);
    expect(stream.rest).toBeUndefined();
  });

  it("gives the items of a list one by one, and the lines of code as they end", () => {
    const stream = new MarkdownStream();
    expect(texts(stream.add("1. one\n2. two\n3. th"))).toEqual(["markdown: 1. one", "markdown: 2. two"]);
    expect(texts(stream.add("ree\n\n```js\nfirst();\nsec"))).toEqual(["markdown: 3. three", "code: first();"]);
    expect(stream.rest).toEqual({ kind: "code", text: "sec", isJoined: true });
    expect(texts(stream.add("ond();\n```\nafter"))).toEqual(["code: second();"]);
  });

  it("sets blocks off from each other, and not the parts of one", () => {
    expect(blocksOf(PAGE, PAGE.length).map(({ text, isJoined }) => [text.trim().slice(0, 6), isJoined])).toEqual([
      ["# One", false],
      ["A para", false],
      ["- a", false],
      ["- b\n  ", true],
      ["After.", false],
      ["let a;", false],
      ["", true],
      ["let b;", true],
      ["| x | ", false],
      ["End", false],
    ]);
  });

  it("is the same in whatever pieces it comes", () => {
    const whole = texts(blocksOf(PAGE, PAGE.length));
    for (const size of [1, 2, 3, 7, 20]) expect(texts(blocksOf(PAGE, size))).toEqual(whole);
  });

  describe("loses nothing", () => {
    const words = fc.constantFrom(
      "a",
      "**b",
      "`",
      "\n",
      "\n\n",
      "- ",
      "1. ",
      "# ",
      "> ",
      "|",
      "---\n",
      "  ",
      "<b>",
      "é",
      "[x]: y\n",
      "\r\n",
    );
    /** Fences are not shown, so a text in which one may stand is another matter. */
    const unfenced = fc
      .array(words, { maxLength: 40 })
      .map((parts) => parts.join(""))
      .filter((text) => !text.includes("```"));
    const sizes = fc.integer({ min: 1, max: 9 });
    const ink = (text: string): string => text.replaceAll(/\s/g, "");
    const inkOf = (blocks: readonly MarkdownBlock[]): string => ink(blocks.map((block) => block.text).join(""));

    it("of any text", () => {
      fc.assert(
        fc.property(unfenced, sizes, (text, size) => inkOf(blocksOf(text, size)) === ink(text)),
        { numRuns: 500 },
      );
    });

    it("of what stands between fences", () => {
      fc.assert(
        fc.property(unfenced, sizes, (text, size) => inkOf(blocksOf(`\`\`\`\n${text}\n\`\`\`\n`, size)) === ink(text)),
        { numRuns: 500 },
      );
    });
  });

  it("gives a block that is too long in pieces", () => {
    const stream = new MarkdownStream();
    const blocks = stream.add("word ".repeat(5_000));
    expect(blocks.length).toBe(1);
    expect(stream.rest).toBeUndefined();
  });

  it("takes back what has not come out without a trace", () => {
    const stream = new MarkdownStream();
    stream.add("Done.\n\nThe answer is 41");
    expect(stream.retract(2)).toBe(false);
    expect(texts([...stream.add("42."), ...stream.end()])).toEqual(["markdown: The answer is 42."]);
  });

  it("tells a block again of which the end is void, and says so", () => {
    const stream = new MarkdownStream();
    stream.add("First.\n\nSecond is wrong.\n\nThird");
    expect(stream.retract("wrong.\n\nThird".length)).toBe(true);
    expect(texts([...stream.add("right."), ...stream.end()])).toEqual(["markdown: Second is right."]);
  });

  it("goes on inside a fence after a retraction", () => {
    const stream = new MarkdownStream();
    stream.add("```\none\ntwo\nth");
    expect(stream.retract(4)).toBe(true);
    expect(texts(stream.add("o2\n```\n"))).toEqual(["code: two2"]);
  });
});
