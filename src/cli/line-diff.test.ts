import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { diffLines, folded, type DiffLine } from "./line-diff.ts";

const MARK = { same: " ", removed: "-", added: "+" } as const;
const shown = (lines: readonly DiffLine[]): string[] => lines.map(({ kind, text }) => `${MARK[kind]}${text}`);
const diff = (before: string, after: string): string[] => shown(diffLines(before.split(""), after.split("")));

describe("a difference of lines", () => {
  it("is what was removed and what was added, among what is the same", () => {
    expect(diff("abc", "abc")).toEqual([" a", " b", " c"]);
    expect(diff("abc", "axc")).toEqual([" a", "-b", "+x", " c"]);
    expect(diff("", "ab")).toEqual(["+a", "+b"]);
    expect(diff("ab", "")).toEqual(["-a", "-b"]);
    expect(diff("", "")).toEqual([]);
    expect(diff("xab", "aby")).toEqual(["-x", " a", " b", "+y"]);
  });

  it("makes the one text of the other, and is never longer than replacing everything", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 40 });
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = diffLines(before, after);
        expect(lines.filter(({ kind }) => kind !== "added").map((line) => line.text)).toEqual(before);
        expect(lines.filter(({ kind }) => kind !== "removed").map((line) => line.text)).toEqual(after);
        expect(lines.filter(({ kind }) => kind === "same").length).toBe(longestCommon(before, after));
      }),
      { seed: 20261130, numRuns: 500 },
    );
  });

  it("gives up looking for the shortest one where everything differs, and is right all the same", () => {
    const before = Array.from({ length: 3_000 }, (_, index) => `before ${index}`);
    const after = Array.from({ length: 3_000 }, (_, index) => `after ${index}`);
    const lines = diffLines(before, after);
    expect(lines.filter(({ kind }) => kind === "removed").map(({ text }) => text)).toEqual(before);
    expect(lines.filter(({ kind }) => kind === "added").map(({ text }) => text)).toEqual(after);
  });
});

describe("a folded difference", () => {
  it("keeps a few equal lines around each change and counts the rest", () => {
    const before = Array.from({ length: 20 }, (_, index) => `${index}`);
    const lines = folded(diffLines(before, before.with(10, "x")), 2);
    expect(lines.map((line) => (line.kind === "folded" ? `(${line.count})` : `${MARK[line.kind]}${line.text}`))).toEqual([
      "(8)",
      " 8",
      " 9",
      "-10",
      "+x",
      " 11",
      " 12",
      "(7)",
    ]);
  });

  it("does not fold a single line, and shows nothing of texts that are the same but their number", () => {
    const before = ["a", "b", "c", "d"];
    expect(folded(diffLines(before, [...before, "e"]), 3)).toHaveLength(5);
    expect(folded(diffLines(before, before))).toEqual([{ kind: "folded", count: 4 }]);
  });
});

/** The length of the longest common subsequence, by the textbook. */
function longestCommon(left: readonly string[], right: readonly string[]): number {
  let row = right.map(() => 0);
  for (const a of left) {
    const next: number[] = [];
    for (const [index, b] of right.entries()) {
      next.push(a === b ? (row[index - 1] ?? 0) + 1 : Math.max(row[index] ?? 0, next[index - 1] ?? 0));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
