/**
 * Counting for `npm test`: what one step brought, read from its exit code or from vitest's JSON report, and the closing line.
 *
 * Invariant: a step that ran no test, wrote no report, or ended badly for a reason that no test shows, has a failure.
 */

/** How many checks or tests passed, failed and were skipped. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 };

/** The sum of several tallies. */
export function sum(tallies: readonly Tally[]): Tally {
  return tallies.reduce(
    (total, tally) => ({
      passed: total.passed + tally.passed,
      failed: total.failed + tally.failed,
      skipped: total.skipped + tally.skipped,
    }),
    NOTHING,
  );
}

/** A check counts as one. */
export function tallyOfCheck(exitCode: number): Tally {
  return exitCode === 0 ? { ...NOTHING, passed: 1 } : { ...NOTHING, failed: 1 };
}

interface VitestReport {
  readonly success?: unknown;
  readonly testResults?: readonly {
    readonly status?: unknown;
    readonly assertionResults?: readonly { readonly status?: unknown }[];
  }[];
}

/**
 * The tally of a vitest run: its tests, plus a failure for each file that could not be loaded, and at least one failure when
 * the run ended badly, found no test, or left no report (`undefined`).
 */
export function tallyOfVitest(exitCode: number, report: string | undefined): Tally {
  const files = readReport(report)?.testResults ?? [];
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const file of files) {
    let failedHere = 0;
    for (const { status } of file.assertionResults ?? []) {
      if (status === "passed") passed += 1;
      else if (status === "failed") failedHere += 1;
      else skipped += 1;
    }
    failed += file.status === "failed" ? Math.max(failedHere, 1) : failedHere;
  }
  const isBad = exitCode !== 0 || passed + failed === 0;
  return { passed, failed: isBad ? Math.max(failed, 1) : failed, skipped };
}

function readReport(report: string | undefined): VitestReport | undefined {
  if (report === undefined) return undefined;
  try {
    return JSON.parse(report) as VitestReport;
  } catch {
    return undefined;
  }
}

/** The last line of `npm test`. */
export function closingLine(tally: Tally): string {
  const skipped = tally.skipped > 0 ? `, ${tally.skipped} skipped` : "";
  return `${tally.passed} passed, ${tally.failed} failed${skipped}`;
}

/** Whether the whole run is good: something was counted and nothing failed. */
export function isGood(tally: Tally): boolean {
  return tally.failed === 0 && tally.passed > 0;
}
