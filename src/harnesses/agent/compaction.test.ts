import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_BASELINE, type Baseline } from "../baseline.ts";
import { nextBaseline, requestSize, type RequestSizes } from "./compaction.ts";

const entry = (said: number, results = 0, reasoning = 0) => ({ said, results, reasoning, notes: Math.min(results, 10) });
const sizes = (entries: RequestSizes["entries"], more: Partial<RequestSizes> = {}): RequestSizes => ({
  fixed: 0,
  summary: 0,
  lastWord: 0,
  entries,
  ...more,
});
const after = (given: RequestSizes, limit: number, current: Baseline = NO_BASELINE) => nextBaseline(given, current, limit);

describe("making room", () => {
  it("is not needed up to the limit", () => {
    expect(after(sizes([entry(400), entry(600)]), 1_000)).toBeUndefined();
  });

  it("takes old results first, and no more than brings the request down to the target", () => {
    const given = sizes([entry(10, 500), entry(10, 500), entry(10, 300), entry(10, 100)]);
    expect(after(given, 1_000)).toEqual({ results: 2, reasoning: 0, summary: 0 });
    expect(requestSize(given, { results: 2, reasoning: 0, summary: 0 })).toBe(460);
  });

  it("then takes reasoning, up to the user's last word", () => {
    const given = sizes([entry(10, 500, 200), entry(10, 0, 200), entry(10), entry(10, 0, 200), entry(10, 0, 100)], { lastWord: 2 });
    expect(after(given, 1_000)).toEqual({ results: 4, reasoning: 1, summary: 0 });
    expect(after(given, 700)).toEqual({ results: 4, reasoning: 2, summary: 0 });
    expect(after(given, 500)).toEqual({ results: 4, reasoning: 4, summary: 4 });
  });

  it("then has what is old summarised, and leaves the last entry as it is", () => {
    const given = sizes([entry(300), entry(300), entry(300), entry(300)]);
    expect(after(given, 1_000)).toEqual({ results: 3, reasoning: 3, summary: 3 });
    const small = sizes([entry(900), entry(50), entry(50), entry(50)]);
    expect(after(small, 1_000)).toEqual({ results: 3, reasoning: 1, summary: 1 });
  });

  it("gives up where the last entry alone is too large", () => {
    expect(after(sizes([entry(5_000)]), 1_000)).toBeUndefined();
    expect(after(sizes([entry(20), entry(5_000)]), 1_000)).toBeUndefined();
    expect(after(sizes([], { fixed: 5_000 }), 1_000)).toBeUndefined();
  });

  it("only ever goes on, gains something each time, and comes to rest", () => {
    const anyEntry = fc
      .record({ said: fc.nat(400), results: fc.nat(600), reasoning: fc.nat(200) })
      .map((e) => entry(e.said, e.results, e.reasoning));
    fc.assert(
      fc.property(fc.array(anyEntry, { minLength: 1, maxLength: 30 }), fc.nat(29), fc.nat(300), (entries, word, fixed) => {
        let current: Baseline = NO_BASELINE;
        // The conversation grows entry by entry, as it does in a session.
        for (let length = 1; length <= entries.length; length += 1) {
          const given = sizes(entries.slice(0, length), {
            fixed,
            summary: current.summary === 0 ? 0 : 100,
            lastWord: Math.min(word, length - 1),
          });
          for (let rounds = 0; ; rounds += 1) {
            const next = nextBaseline(given, current, 1_000);
            if (next === undefined) break;
            expect(rounds).toBeLessThan(3);
            expect(requestSize(given, next)).toBeLessThan(requestSize(given, current));
            expect(next.results).toBeGreaterThanOrEqual(current.results);
            expect(next.reasoning).toBeGreaterThanOrEqual(current.reasoning);
            expect(next.summary).toBeGreaterThanOrEqual(current.summary);
            expect(Math.max(next.results, next.reasoning, next.summary)).toBeLessThan(length);
            current = next;
          }
        }
      }),
      { seed: 20261130, numRuns: 500 },
    );
  });
});
