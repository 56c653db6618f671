import { describe, expect, it } from "vitest";
import { ERROR_CODES, type ErrorCode } from "../base/errors.ts";
import { collected, durationMs, natural, pair, timeSince } from "./arguments.ts";
import { EXIT_MEANINGS, exitOfError, exitTable } from "./exit.ts";
import { clipped, plain } from "./plain.ts";
import { tokenOf } from "./token.ts";

describe("an argument", () => {
  it.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
  ])("%s is a time", (text, ms) => expect(durationMs(text)).toBe(ms));

  it.each(["30", "s", "-1s", "1w", "1 s", ""])("%j is no time, and the error says what one is", (text) =>
    expect(() => durationMs(text)).toThrow("30s"),
  );

  it("is a time of a hundred years at most", () => {
    expect(durationMs("36500d")).toBe(36_500 * 86_400_000);
    for (const text of ["36501d", "99999999999999d", `${"9".repeat(400)}ms`]) {
      expect(() => durationMs(text)).toThrow("at most 36500d");
      if (!text.endsWith("ms")) expect(() => timeSince(text)).toThrow("at most 36500d");
    }
  });

  it("is a time ago or a date", () => {
    const agoMs = Date.now() - timeSince("7d").getTime();
    expect(Math.abs(agoMs - 7 * 86_400_000)).toBeLessThan(60_000);
    expect(timeSince("2026-11-30").toISOString()).toBe("2026-11-30T00:00:00.000Z");
    expect(timeSince("2026-11-30T12:00:00+02:00").toISOString()).toBe("2026-11-30T10:00:00.000Z");
    for (const text of ["7", "d", "yesterday", "2026-13-01", "2026-11-30 12:00", "-1d", ""]) expect(() => timeSince(text)).toThrow("7d");
  });

  it("is a whole number or is refused", () => {
    expect(natural("0")).toBe(0);
    for (const text of ["-1", "1.5", "1e3", "0x1", "", "9007199254740992"]) expect(() => natural(text)).toThrow("whole number");
  });

  it("is a pair; the value may have an equals sign", () => {
    expect(pair("b=c=d", { a: "1" })).toEqual({ a: "1", b: "c=d" });
    for (const text of ["a", "=b"]) expect(() => pair(text)).toThrow("key=value");
    expect(collected("b", ["a"])).toEqual(["a", "b"]);
  });
});

describe("an exit code", () => {
  it("is defined for every error and explained in the table", () => {
    for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
      expect(EXIT_MEANINGS[exitOfError(code)]).toBeTypeOf("string");
      expect(exitOfError(code)).not.toBe(0);
    }
    expect(exitTable()).toContain("    3  no such session");
  });
});

describe("a text on the terminal", () => {
  it("keeps line breaks and tabs, and shows what else would steer the terminal", () => {
    expect(plain("a\tb\r\nc\u0007\u009b1m\ud800")).toBe("a\tb\nc\\u0007\\u009b1m\ufffd");
  });

  it("is cut to a length, marked, and never inside a character", () => {
    expect(clipped("abcdef", 6)).toBe("abcdef");
    expect(clipped("abcdefg", 6)).toBe("abcde…");
    expect(clipped("abcd😀g", 6)).toBe("abcd\ufffd…");
  });
});

describe("the token", () => {
  it("comes from the environment, or from the file that it names", () => {
    expect(tokenOf({})).toBeUndefined();
    expect(tokenOf({ HOLDFAST_TOKEN: " secret \n" })).toBe("secret");
    expect(() => tokenOf({ HOLDFAST_TOKEN_FILE: "/nonexistent" })).toThrow("HOLDFAST_TOKEN_FILE: must name a file that can be read");
    expect(() => tokenOf({ HOLDFAST_TOKEN: "two words" })).toThrow("HOLDFAST_TOKEN: must hold a token");
  });
});
