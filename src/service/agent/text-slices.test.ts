import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { slicesOf } from "./text-slices.ts";

describe("a text in slices", () => {
  it("is the text again when they are joined, and none is too long or ends within a character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 2, max: 9 }), (text, charsMax) => {
        const slices = [...slicesOf(text, charsMax)];
        expect(slices.join("")).toBe(text);
        for (const slice of slices) {
          expect(slice.length).toBeLessThanOrEqual(charsMax);
          expect(slice.isWellFormed()).toBe(true);
        }
      }),
    );
  });

  it("is as few slices as fit, and none where there is no text", () => {
    expect([...slicesOf("abcdefg", 3)]).toEqual(["abc", "def", "g"]);
    expect([...slicesOf("abc", 3)]).toEqual(["abc"]);
    expect([...slicesOf("a😀b", 2)]).toEqual(["a", "😀", "b"]);
    expect([...slicesOf("\uFEFFab", 2)]).toEqual(["\uFEFFa", "b"]);
    expect([...slicesOf("", 3)]).toEqual([]);
  });
});
