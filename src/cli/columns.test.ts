import { describe, expect, it } from "vitest";
import { hanging } from "./columns.ts";
import { exitTable } from "./exit.ts";

describe("a text behind a head", () => {
  it("stands on one line where it fits, and goes on below its beginning where it does not", () => {
    expect(hanging("  a  ", "few words")).toBe("  a  few words");
    const words = "word ".repeat(20).trim();
    expect(hanging("  a  ", words)).toBe(`  a  ${"word ".repeat(15).trim()}\n     ${"word ".repeat(5).trim()}`);
  });

  it("leaves a word whole that is longer than a line", () => {
    expect(hanging("  a  ", `${"x".repeat(90)} b`)).toBe(`  a  ${"x".repeat(90)}\n     b`);
  });

  it("keeps the table of exit codes within a terminal", () => {
    expect(
      Math.max(
        ...exitTable()
          .split("\n")
          .map((line) => line.length),
      ),
    ).toBeLessThanOrEqual(80);
  });
});
