import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isWellFormedJson, WellFormedText } from "./well-formed.ts";

/** Text of UTF-16 units in which surrogates are common, cut into deltas anywhere. */
const unit = fc.oneof(
  fc.constantFrom("\ud83d", "\ude00", "a", "é"),
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
);
const deltas = fc.array(fc.array(unit, { maxLength: 4 }).map((units) => units.join("")));

describe("text from deltas", () => {
  it("is the well-formed form of the whole, whatever the cuts, and each piece of it is well-formed", () => {
    fc.assert(
      fc.property(deltas, (pieces) => {
        const text = new WellFormedText();
        const out = [...pieces.map((piece) => text.push(piece)), text.end()];
        expect(out.every((piece) => piece.isWellFormed())).toBe(true);
        expect(out.join("")).toBe(pieces.join("").toWellFormed());
        expect(text.text).toBe(out.join(""));
      }),
      { seed: 7 },
    );
  });

  it("holds back the first half of a pair and nothing else", () => {
    const text = new WellFormedText();
    expect(text.push("a\ud83d")).toBe("a");
    expect(text.push("\ude00")).toBe("😀");
    expect(text.push("b")).toBe("b");
    expect(text.push("\ud83d")).toBe("");
    expect(text.end()).toBe("\ufffd");
  });
});

describe("a JSON value", () => {
  it.each<[boolean, unknown]>([
    [true, undefined],
    [true, { a: ["\ud83d\ude00", { "\u00e9": null }], b: 1 }],
    [true, "the escape \\ud83d in words"],
    [false, "\ud83d"],
    [false, { a: [{ b: "x\ude00" }] }],
    [false, { "\ud83d": 1 }],
  ])("is well-formed: %s", (expected, value) => {
    expect(isWellFormedJson(value)).toBe(expected);
  });
});
