import { describe, expect, it } from "vitest";
import { closingLine, isGood, NOTHING, sum, tallyOfCheck, tallyOfVitest } from "./tally.ts";

function report(...files: readonly { status: string; tests: readonly string[] }[]): string {
  const testResults = files.map(({ status, tests }) => ({ status, assertionResults: tests.map((test) => ({ status: test })) }));
  return JSON.stringify({ success: files.every(({ status }) => status === "passed"), testResults });
}

describe("the tally of a vitest run", () => {
  it("counts tests by their outcome", () => {
    const text = report({ status: "passed", tests: ["passed", "pending", "todo"] }, { status: "failed", tests: ["failed", "passed"] });
    expect(tallyOfVitest(1, text)).toEqual({ passed: 2, failed: 1, skipped: 2 });
  });

  it("counts a file that could not be loaded", () => {
    expect(tallyOfVitest(1, report({ status: "failed", tests: [] }, { status: "passed", tests: ["passed"] }))).toEqual({
      passed: 1,
      failed: 1,
      skipped: 0,
    });
  });

  it("counts a failed hook, whose tests are skipped", () => {
    expect(tallyOfVitest(1, report({ status: "failed", tests: ["skipped", "skipped"] }))).toEqual({ passed: 0, failed: 1, skipped: 2 });
  });

  it("fails when the run ended badly although every test passed", () => {
    expect(tallyOfVitest(1, report({ status: "passed", tests: ["passed"] }))).toEqual({ passed: 1, failed: 1, skipped: 0 });
  });

  it.each([
    ["no report", undefined],
    ["an unreadable report", "{"],
    ["a report without a test", report()],
    ["a report of skipped tests only", report({ status: "passed", tests: ["pending"] })],
  ])("fails with %s", (_what, text) => {
    expect(tallyOfVitest(0, text).failed).toBe(1);
  });
});

describe("the closing line", () => {
  it("is read by machines", () => {
    expect(closingLine({ passed: 12, failed: 0, skipped: 0 })).toBe("12 passed, 0 failed");
    expect(closingLine({ passed: 12, failed: 3, skipped: 1 })).toBe("12 passed, 3 failed, 1 skipped");
  });

  it("stands for a good run only when something ran and nothing failed", () => {
    expect(isGood(sum([tallyOfCheck(0), { passed: 4, failed: 0, skipped: 1 }]))).toBe(true);
    expect(isGood(sum([tallyOfCheck(0), tallyOfCheck(2)]))).toBe(false);
    expect(isGood(NOTHING)).toBe(false);
  });
});
