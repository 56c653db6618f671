import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_BASELINE, type Baseline } from "../baseline.ts";
import { nextBaseline, requestSize, type RequestSizes } from "./compaction.ts";

const entry = (said: number, results = 0, reasoning = 0) => ({ said, results, reasoning, notes: Math.min(results, 10) });
const observation = (results: number) => ({ ...entry(10, results), kind: "observation" as const });
const system = (said: number) => ({ ...entry(said), kind: "system" as const });
const sizes = (entries: RequestSizes["entries"], more: Partial<RequestSizes> = {}): RequestSizes => ({
  fixed: 0,
  summary: 0,
  lastWord: 0,
  unseen: entries.length - 1,
  system: entries.length,
  entries,
  ...more,
});
const baseline = (given: Partial<Baseline>): Baseline => ({ ...NO_BASELINE, system: given.summary ?? 0, ...given });
const after = (given: RequestSizes, limit: number, current: Baseline = NO_BASELINE) => nextBaseline(given, current, limit);

describe("making room", () => {
  it("is not needed up to the limit", () => {
    expect(after(sizes([entry(400), entry(600)]), 1_000)).toBeUndefined();
  });

  it("takes old results first, and no more than brings the request down to the target", () => {
    const given = sizes([entry(10, 500), entry(10, 500), entry(10, 300), entry(10, 100)]);
    expect(after(given, 1_000)).toEqual(baseline({ results: 2, reasoning: 0, summary: 0 }));
    expect(requestSize(given, baseline({ results: 2 }))).toBe(460);
  });

  it("takes old observations before them, and never the last one", () => {
    const given = sizes([observation(600), entry(10, 300), observation(600), entry(10, 300), observation(600)], { unseen: 3 });
    expect(after(given, 2_200)).toEqual(baseline({ observations: 3 }));
    expect(requestSize(given, baseline({ observations: 3 }))).toBe(1_270);
    expect(after(given, 2_000)).toEqual(baseline({ observations: 3, results: 2 }));
  });

  it("leaves what the model has not seen, and beside a summary what the system said in the turn", () => {
    const given = sizes([entry(300), system(50), entry(300), entry(10, 300), observation(300)], { unseen: 3, system: 1 });
    expect(after(given, 1_000)).toEqual(baseline({ results: 3, reasoning: 3, summary: 3, system: 1 }));
    expect(requestSize(given, baseline({ summary: 3, system: 1 }))).toBe(670);
    expect(requestSize(given, baseline({ summary: 3 }))).toBe(620);
    expect(after({ ...given, system: 2 }, 1_000)).toEqual(baseline({ results: 3, reasoning: 3, summary: 3 }));
  });

  it("then takes reasoning, up to the user's last word", () => {
    const given = sizes([entry(10, 500, 200), entry(10, 0, 200), entry(10), entry(10, 0, 200), entry(10, 0, 100)], { lastWord: 2 });
    expect(after(given, 1_000)).toEqual(baseline({ results: 4, reasoning: 1, summary: 0 }));
    expect(after(given, 700)).toEqual(baseline({ results: 4, reasoning: 2, summary: 0 }));
    expect(after(given, 500)).toEqual(baseline({ results: 4, reasoning: 4, summary: 4 }));
  });

  it("then has what is old summarised, and leaves the last entry as it is", () => {
    const given = sizes([entry(300), entry(300), entry(300), entry(300)]);
    expect(after(given, 1_000)).toEqual(baseline({ results: 3, reasoning: 3, summary: 3 }));
    const small = sizes([entry(900), entry(50), entry(50), entry(50)]);
    expect(after(small, 1_000)).toEqual(baseline({ results: 3, reasoning: 1, summary: 1 }));
  });

  it("gives up where the last entry alone is too large", () => {
    expect(after(sizes([entry(5_000)]), 1_000)).toBeUndefined();
    expect(after(sizes([entry(20), entry(5_000)]), 1_000)).toBeUndefined();
    expect(after(sizes([], { fixed: 5_000 }), 1_000)).toBeUndefined();
  });

  it("only ever goes on, gains something each time, and comes to rest", () => {
    const anyEntry = fc
      .record({
        said: fc.nat(400),
        results: fc.nat(600),
        reasoning: fc.nat(200),
        kind: fc.constantFrom("observation", "system", undefined),
      })
      .map((e) => ({ ...entry(e.said, e.results, e.reasoning), kind: e.kind }));
    fc.assert(
      fc.property(fc.array(anyEntry, { minLength: 1, maxLength: 30 }), fc.nat(29), fc.nat(300), fc.nat(3), (entries, word, fixed, news) => {
        let current: Baseline = NO_BASELINE;
        // The conversation grows entry by entry, as it does in a session.
        for (let length = 1; length <= entries.length; length += 1) {
          const given = sizes(entries.slice(0, length), {
            fixed,
            summary: current.summary === 0 ? 0 : 100,
            lastWord: Math.min(word, length - 1),
            unseen: Math.max(0, length - 1 - news),
            system: Math.max(0, length - 5),
          });
          for (let rounds = 0; ; rounds += 1) {
            const next = nextBaseline(given, current, 1_000);
            if (next === undefined) break;
            expect(rounds).toBeLessThan(3);
            expect(requestSize(given, next)).toBeLessThan(requestSize(given, current));
            expect(next.observations).toBeGreaterThanOrEqual(current.observations);
            expect(next.results).toBeGreaterThanOrEqual(current.results);
            expect(next.reasoning).toBeGreaterThanOrEqual(current.reasoning);
            expect(next.summary).toBeGreaterThanOrEqual(current.summary);
            expect(Math.max(next.observations, next.results, next.reasoning, next.summary)).toBeLessThan(length);
            expect(next.system).toBeLessThanOrEqual(next.summary);
            current = next;
          }
        }
      }),
      { seed: 20261130, numRuns: 500 },
    );
  });
});
