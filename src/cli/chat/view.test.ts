import { describe, expect, it } from "vitest";
import { helpLines } from "./commands.ts";
import { Printer } from "./view.ts";

/** Rows as they are printed on a terminal of so many columns, without looks. */
const printed = (lines: readonly string[], columns: number): readonly string[] =>
  new Printer().lines({ kind: "lines", lines }, { layout: { columns, keep: true }, paint: (_, text) => text });

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
