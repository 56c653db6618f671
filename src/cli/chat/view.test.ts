import { describe, expect, it } from "vitest";
import { helpLines } from "./commands.ts";
import { Printer } from "./view.ts";

/** Rows as they are printed on a terminal of so many columns, without looks. */
const printed = (lines: readonly string[], columns: number): readonly string[] =>
  new Printer().lines({ kind: "lines", lines }, { layout: { columns, keep: true }, paint: (_, text) => text });

/** What stands above the question about a change with this diff. */
const asked = (diff: readonly string[]): readonly string[] =>
  new Printer().lines(
    { kind: "details", text: diff.join("\n"), isWhole: false },
    { layout: { columns: 20, keep: true }, paint: (_, text) => text },
  );

describe("a diff above its question", () => {
  const lines = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `+ ${index + 1}`);

  it("is there as a whole where it is short", () => {
    expect(asked(lines(13))).toEqual(lines(13).map((line) => `  ${line}`));
  });

  it("begins, where it is long, and says how much more there is", () => {
    expect(asked(lines(14))).toEqual([...lines(12).map((line) => `  ${line}`), "  … 2 more lines, d to see all"]);
  });

  it("says that lines are cut where they are", () => {
    expect(asked([`+ ${"x".repeat(30)}`])).toEqual([`  + ${"x".repeat(15)}…`, "  … lines are cut, d to see all"]);
    expect(asked(["+ \ta"])).toEqual(["  +  a"]);
  });
});

describe("rows of columns", () => {
  it("are as they are where there is room", () => {
    expect(printed(["a  b c", "", "├─ at 2  uid"], 40)).toEqual(["  a  b c", "  ", "  ├─ at 2  uid"]);
  });

  it("go on below their last column where there is none, broken between words", () => {
    expect(printed(["/name  what it does, in a few words"], 24)).toEqual(["  /name  what it does,", "         in a few words"]);
    for (const line of printed(helpLines(), 60)) expect(line.length).toBeLessThanOrEqual(60);
  });

  it("go on at the margin where the last column is nearly all of the line's end", () => {
    expect(printed(["one two three  four"], 16)).toEqual(["  one two three", "  four"]);
  });
});

describe("what went wrong with a call", () => {
  const outcome = (result: string, success: boolean): readonly string[] =>
    new Printer().lines(
      { kind: "outcome", outcome: { success, result }, isWhole: false },
      { layout: { columns: 16, keep: true }, paint: (_, text) => text },
    );

  it("is read whole where it is a sentence", () => {
    expect(outcome("it may have taken effect", false)).toEqual(["  it may have", "  taken effect"]);
  });

  it("is cut where it is none", () => {
    expect(outcome("x".repeat(100), false).join("")).toMatch(/^ {2}x.*…$/);
    expect(outcome("x".repeat(100), false)).toHaveLength(6);
    expect(outcome("a\nand more than a line", false)).toEqual(["  a", "  and more than…"]);
    expect(outcome("it may have taken effect", true)).toEqual(["  it may have t…"]);
  });
});
