import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSameBytes, textStart, utf8Length } from "./bytes.ts";

describe("isSameBytes", () => {
  it("is so for the same bytes in the same order, wherever they stand", () => {
    const whole = Uint8Array.of(9, 1, 2, 3);
    expect(isSameBytes(whole.subarray(1), Uint8Array.of(1, 2, 3))).toBe(true);
    expect(isSameBytes(new Uint8Array(), Buffer.alloc(0))).toBe(true);
    for (const other of [
      [1, 2],
      [1, 2, 4],
      [3, 2, 1],
      [1, 2, 3, 0],
    ]) {
      expect(isSameBytes(Uint8Array.of(1, 2, 3), Uint8Array.from(other))).toBe(false);
    }
  });
});

describe("utf8Length", () => {
  it("is what an encoder makes, of any text", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
    );
    fc.assert(fc.property(text, (any) => utf8Length(any) === new TextEncoder().encode(any).length));
  });

  it("is so for long ones, whatever stands where they are divided", () => {
    for (const [filler, bytes] of [
      ["é", 2],
      ["€", 3],
      ["😀", 4],
      ["\ud800", 3],
    ] as const) {
      for (let before = 0; before < 5; before++) {
        expect(utf8Length("a".repeat(before) + filler.repeat(5_000))).toBe(before + bytes * 5_000);
      }
    }
  });
});

describe("textStart", () => {
  it("is as much of a text as so many bytes take, and splits no character", () => {
    expect(textStart("a€😀b", 4)).toBe("a€");
    expect(textStart("a€😀b", 7)).toBe("a€");
    expect(textStart("a€😀b", 8)).toBe("a€😀");
    expect(textStart("abc", 0)).toBe("");
    const sizes = fc.nat({ max: 200 });
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), sizes, (text, bytesMax) => {
        const start = textStart(text, bytesMax);
        const next = String.fromCodePoint(...[text.codePointAt(start.length)].filter((point) => point !== undefined));
        return text.startsWith(start) && utf8Length(start) <= bytesMax && (next === "" || utf8Length(start + next) > bytesMax);
      }),
    );
  });
});
