import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonical } from "../testing/canonical-reference.ts";
import { awkwardNumber, awkwardText, jsonObject } from "../testing/awkward-values.ts";
import { canonicalJson } from "./index.ts";
import { base64, isTimestampInRange, numberText, stringText, timestampText } from "./json-text.ts";

describe("canonical JSON", () => {
  it("is what a third-party RFC 8785 library writes, for any object", () => {
    fc.assert(
      fc.property(jsonObject(), (object) => {
        expect(canonicalJson(object)).toBe(canonical(object));
      }),
      { seed: 2, numRuns: 4000 },
    );
  });

  it("reads back as the same strings and numbers", () => {
    fc.assert(
      fc.property(awkwardText(), awkwardNumber(), (text, number) => {
        expect(JSON.parse(stringText(text))).toBe(text);
        expect(JSON.parse(numberText(number))).toBe(number === 0 ? 0 : number);
      }),
      { seed: 3, numRuns: 4000 },
    );
  });

  it("escapes what RFC 8785 escapes and nothing else", () => {
    expect(stringText('\u0000\b\t\n\u000b\f\r\u001f"\\/\u007f\u2028<é😀')).toBe(
      '"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\/\u007f\u2028<é😀"',
    );
  });

  it("refuses what has no form", () => {
    expect(() => stringText("a\udfff")).toThrow(/lone surrogate/);
    expect(() => numberText(NaN)).toThrow(/not finite/);
    expect(() => numberText(-Infinity)).toThrow(/not finite/);
  });
});

describe("base64", () => {
  it("is standard base64 with padding, at every length", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        expect(base64(bytes)).toBe(Buffer.from(bytes).toString("base64"));
      }),
      { seed: 4, numRuns: 2000 },
    );
    const long = Uint8Array.from({ length: 100_001 }, (_, index) => (index * 31) & 0xff);
    expect(base64(long)).toBe(Buffer.from(long).toString("base64"));
  });
});

/** What is written for the last second of a day, where it is not what the platform's calendar says. */
function wrongText(day: number): string[] {
  const text = timestampText(BigInt(day) * 86_400n + 86_399n, 0);
  const expected = `"${new Date(day * 86_400_000 + 86_399_000).toISOString().replace(".000", "")}"`;
  return text === expected ? [] : [text];
}

describe("a timestamp", () => {
  it("has the calendar's date: every day of eight centuries, every 13th from year 1 to year 9999", () => {
    const wrong: string[] = [];
    for (let day = -135_140; day <= 157_054; day++) wrong.push(...wrongText(day));
    for (let day = -719_162; day <= 2_932_896; day += 13) wrong.push(...wrongText(day));
    expect([...wrong, ...wrongText(2_932_896)]).toEqual([]);
  });

  it.each([
    [0, '"1970-01-01T00:00:00Z"'],
    [10_000_000, '"1970-01-01T00:00:00.010Z"'],
    [120_000, '"1970-01-01T00:00:00.000120Z"'],
    [1, '"1970-01-01T00:00:00.000000001Z"'],
    [999_999_999, '"1970-01-01T00:00:00.999999999Z"'],
  ])("with %d nanoseconds has 0, 3, 6 or 9 fraction digits", (nanos, text) => {
    expect(timestampText(0n, nanos)).toBe(text);
  });

  it("is in range from the first second of year 1 to the last nanosecond of year 9999", () => {
    expect(isTimestampInRange(-62_135_596_800n, 0)).toBe(true);
    expect(isTimestampInRange(-62_135_596_801n, 999_999_999)).toBe(false);
    expect(isTimestampInRange(253_402_300_799n, 999_999_999)).toBe(true);
    expect(isTimestampInRange(253_402_300_800n, 0)).toBe(false);
    expect(isTimestampInRange(2n ** 63n - 1n, 0)).toBe(false);
    expect(isTimestampInRange(0n, 0.5)).toBe(false);
  });
});
