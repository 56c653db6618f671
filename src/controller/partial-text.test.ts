import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PartialText } from "./partial-text.ts";

const grown = (chunks: readonly string[]): PartialText =>
  chunks.slice(1).reduce((text, chunk) => text.with(chunk), PartialText.of(chunks[0] ?? ""));

describe("a text that grows", () => {
  it("is its chunks joined, from wherever it is taken", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "binary" }), { minLength: 1 }),
        fc.nat({ max: 99 }),
        fc.nat({ max: 9 }),
        (chunks, share, most) => {
          const whole = chunks.join("");
          const units = Math.floor((whole.length * share) / 99);
          const text = grown(chunks);
          expect([String(text), text.length, text.from(units)]).toEqual([whole, whole.length, whole.slice(units)]);
          expect(text.from(units, most)).toBe(whole.slice(units, units + most));
        },
      ),
    );
  });

  it("stays what it was at its moment, whatever it grows to", () => {
    const early = grown(["one ", "two "]);
    const one = early.with("three");
    const other = early.with("four");
    expect([early, one, other, one.with("!")].map(String)).toEqual(["one two ", "one two three", "one two four", "one two three!"]);
  });
});
