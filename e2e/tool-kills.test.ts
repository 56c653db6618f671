/**
 * Tool calls with real effects under random `kill -9` of the server (I3, I7): a slice of `npm run tool-kills`, which a release runs with 10,000 turns. And the
 * checker itself: each thing that must not be is planted once, and found.
 */

import { describe, expect, it } from "vitest";
import { runCampaign } from "./support/tool-kills/campaign.ts";
import { violationsIn, type Evidence, type RecordedCall } from "./support/tool-kills/check.ts";
import { newDataFolder } from "./support/server-process.ts";

const TURNS = Number(process.env["HOLDFAST_TOOL_TURNS"] ?? "100");

describe("tools under kill -9", () => {
  it(`have every effect as often as is promised, in ${TURNS} turns`, { timeout: 120_000 + TURNS * 1_000 }, async () => {
    const options = { turns: TURNS, seed: 20_261, sessions: 16, lifeMsMax: 10_000, lifeTurnsMax: 16 };
    const report = await runCampaign({ ...options, folder: newDataFolder() });
    expect(report.violations).toEqual([]);
    expect(report.turns).toBe(TURNS);
    // The test has tested something: kills did hit calls in the middle, and what was cut off was taken up.
    expect(report.kills).toBeGreaterThan(3);
    expect(report.resumes).toBeGreaterThan(0);
    expect(report.repeats + report.unknownDone + report.unknownNotDone).toBeGreaterThan(0);
    // The same evidence with one effect twice does not pass.
    const { evidence } = report;
    for (const ledger of ["once", "always"] as const) {
      const [line] = evidence[ledger];
      if (line === undefined) throw new Error(`nothing was written to the ledger ${ledger}`);
      expect(violationsIn({ ...evidence, [ledger]: [...evidence[ledger], line] })).toHaveLength(1);
    }
  });
});

describe("the checker", () => {
  const call = (more: Partial<RecordedCall>): RecordedCall => ({
    session: "s",
    mark: "a",
    tool: "once",
    results: ["success"],
    decisions: 0,
    ...more,
  });
  const line = { mark: "a", key: "k" };
  const nothing: Evidence = { calls: [], once: [], attempts: [], always: [], unsettled: [], broken: [] };
  const idempotent = (more: Partial<Evidence> = {}, as: Partial<RecordedCall> = {}): Evidence => ({
    ...nothing,
    calls: [call(as)],
    once: [line],
    attempts: [line],
    ...more,
  });
  const other = (more: Partial<Evidence> = {}, as: Partial<RecordedCall> = {}): Evidence => ({
    ...nothing,
    calls: [call({ tool: "always", ...as })],
    always: [line],
    ...more,
  });
  const unknown = { results: ["unknown"] } as const;

  it.each<[string, Evidence]>([
    ["nothing at all", nothing],
    ["an idempotent effect", idempotent()],
    ["an idempotent effect that was driven again under its key", idempotent({ attempts: [line, line] })],
    ["another effect", other()],
    ["an unknown outcome that took effect", other({ unsettled: ["a"] }, unknown)],
    ["an unknown outcome that took none", other({ unsettled: ["a"], always: [] }, unknown)],
    ["an approved effect", other({}, { tool: "asked", decisions: 1 })],
  ])("finds nothing wrong with %s", (_what, evidence) => {
    expect(violationsIn(evidence)).toEqual([]);
  });

  it.each<[string, Evidence, string]>([
    ["an idempotent effect twice", idempotent({ once: [line, line] }), "a: an idempotent effect is there 2 times"],
    ["an idempotent effect that is missing", idempotent({ once: [] }), "a: an idempotent effect is there 0 times"],
    ["another key for the second run", idempotent({ attempts: [line, { ...line, key: "l" }] }), "a: its tool was told 2 keys"],
    ["an idempotent call given up", idempotent({ unsettled: ["a"] }, unknown), 'a: an idempotent call came to "unknown"'],
    ["an idempotent call that failed", idempotent({}, { results: ["failed"] }), 'a: an idempotent call came to "failed"'],
    ["another effect twice", other({ always: [line, line] }), "a: an effect is there 2 times"],
    ["an unknown effect twice", other({ always: [line, line], unsettled: ["a"] }, unknown), "a: an effect is there 2 times"],
    ["success without an effect", other({ always: [] }), "a: its result says success, and there is no effect"],
    ["an unknown outcome that is told as a failure", other({}, { results: ["failed"] }), 'a: a call came to "failed"'],
    ["a call without a result", other({}, { results: [] }), "a: a call came to 0 results"],
    ["a call with two", other({}, { results: ["success", "success"] }), "a: a call came to 2 results"],
    ["an unknown outcome that is not listed", other({}, unknown), "a: its outcome is unknown, and it is not listed as unsettled"],
    ["a known one that is", other({ unsettled: ["a"] }), "a: it is listed as unsettled, and its outcome is on record"],
    ["an effect without a record", { ...nothing, always: [line] }, "a: a tool ran for a call that is not on record"],
    [
      "a call that is on record twice",
      other({ calls: [call({ tool: "always" }), call({ tool: "always" })] }),
      "a: the call is on record 2 times",
    ],
    ["the effect of another tool", other({ once: [line] }), "a: another tool ran than the one on record"],
    ["an effect that nobody approved", other({}, { tool: "asked" }), "a: it has 0 decisions"],
    ["a broken chain", other({ broken: ["s"] }), "s: its chain does not verify"],
  ])("finds %s", (_what, evidence, violation) => {
    expect(violationsIn(evidence)).toContain(violation);
  });
});
