import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { widthOf } from "../terminal/width.ts";
import { span, textOf } from "./spans.ts";
import { wrapped } from "./wrap.ts";

const lines = (text: string, columns: number): string[] => wrapped([span(text)], columns).map(textOf);

describe("wrapping", () => {
  it("breaks between words, and long words where it must", () => {
    expect(lines("one two three", 8)).toEqual(["one two", "three"]);
    expect(lines("abcdefghijklmnop", 8)).toEqual(["abcdefgh", "ijklmnop"]);
    expect(lines("a\nb", 8)).toEqual(["a", "b"]);
  });

  it("keeps a word together that has two looks", () => {
    const line = [span("one "), span("tw", "bold"), span("o-three")];
    expect(wrapped(line, 10).map(textOf)).toEqual(["one", "two-three"]);
  });

  it("counts wide characters as two columns, and marks as none", () => {
    expect(widthOf("日本")).toBe(4);
    expect(widthOf("e\u0301")).toBe(1);
    expect(widthOf("\u{1f600}")).toBe(2);
    expect(lines("日本語日本語", 8)).toEqual(["日本語日", "本語"]);
  });

  it("never makes a line that is too wide, and loses no word", () => {
    const text = fc.string({ unit: fc.constantFrom("a", " ", "bcd", "日", "\u{1f600}", "e\u0301"), maxLength: 60 });
    fc.assert(
      fc.property(text, fc.integer({ min: 8, max: 30 }), (words, columns) => {
        const broken = lines(words, columns);
        for (const line of broken) expect(widthOf(line)).toBeLessThanOrEqual(columns);
        expect(broken.join("").replaceAll(" ", "")).toBe(words.replaceAll(" ", ""));
      }),
    );
  });
});
