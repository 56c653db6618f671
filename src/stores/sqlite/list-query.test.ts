import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SessionUid } from "../../base/index.ts";
import type { ListRequest } from "../../journal/index.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { openWriter } from "./connection.ts";
import { listQueryOf } from "./list-query.ts";

const CHOICES = {
  project: [undefined, "p"],
  parent: [undefined, "u" as SessionUid],
  openTurn: [undefined, true, false],
  openApproval: [undefined, true, false],
  sinceMs: [undefined, 1],
  includeDeleted: [undefined, true],
  after: [undefined, { createTimeMs: 1, uid: "u" as SessionUid }],
} as const;

function requests(): ListRequest[] {
  let all: ListRequest[] = [{ limit: 10 }];
  for (const [field, values] of Object.entries(CHOICES)) {
    all = all.flatMap((request) => values.map((value) => ({ ...request, [field]: value })));
  }
  return all;
}

describe("a listing", () => {
  using folder = new TemporaryFolder();
  const db = openWriter({ path: join(folder.path, "journal.sqlite"), fileBytesMax: undefined });
  const plans = requests().map((request) => {
    const { sql, values } = listQueryOf(request);
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
    return { request, plan: plan.map((step) => String(step.detail)) };
  });
  db.close();

  it("walks one index in order, whatever its filters, and sorts only what is of one millisecond", () => {
    expect(plans.length).toBe(288);
    for (const { request, plan } of plans) {
      const sorts = plan.filter((detail) => detail.includes("TEMP B-TREE"));
      expect({ request, sorts }).toEqual({ request, sorts: ["USE TEMP B-TREE FOR LAST TERM OF ORDER BY"] });
      expect(plan[0]).toMatch(/USING INDEX sessions_by_/);
    }
  });

  it("looks up everything else of a session by its key", () => {
    for (const { request, plan } of plans) {
      const scans = plan.slice(1).filter((detail) => detail.startsWith("SCAN"));
      expect({ request, scans }).toEqual({ request, scans: [] });
    }
  });

  it("begins where the last page ended", () => {
    for (const { plan } of plans.filter(({ request }) => request.after !== undefined)) expect(plan[0]).toMatch(/create_time_ms</);
  });
});
