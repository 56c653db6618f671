import { describe, expect, it } from "vitest";
import type { Seq } from "../base/index.ts";
import { segmentsOf, type OriginOf } from "./lineage.ts";

const ORIGINS: Readonly<Record<number, { key: number; forkSeq: number }>> = {
  2: { key: 1, forkSeq: 10 },
  3: { key: 2, forkSeq: 15 },
  4: { key: 3, forkSeq: 7 },
};
const originOf: OriginOf = (key) => {
  const origin = ORIGINS[key];
  return origin && { key: origin.key, forkSeq: origin.forkSeq as Seq };
};
const segments = (key: number, from: number, to: number, of: OriginOf = originOf) =>
  segmentsOf(key, from as Seq, to as Seq, of).map((segment) => [segment.key, segment.fromSeq, segment.toSeq]);

describe("segmentsOf", () => {
  it("is the whole range of a session that was not forked", () => {
    expect(segments(1, 3, 9)).toEqual([[1, 3, 9]]);
  });

  it("takes a forked session's first records from those who wrote them, oldest first", () => {
    expect(segments(3, 1, 20)).toEqual([
      [1, 1, 10],
      [2, 11, 15],
      [3, 16, 20],
    ]);
    expect(segments(3, 9, 16)).toEqual([
      [1, 9, 10],
      [2, 11, 15],
      [3, 16, 16],
    ]);
    expect(segments(3, 12, 13)).toEqual([[2, 12, 13]]);
  });

  it("skips those whose own records are beyond the fork", () => {
    expect(segments(4, 1, 9)).toEqual([
      [1, 1, 7],
      [4, 8, 9],
    ]);
  });

  it("is empty for an empty range", () => {
    expect(segments(3, 5, 4)).toEqual([]);
    expect(segments(1, 1, 0)).toEqual([]);
  });

  it("looks no further up than the range goes, and needs no stack", () => {
    let lookUps = 0;
    const deep: OriginOf = (key) => {
      lookUps++;
      return key === 0 ? undefined : { key: key - 1, forkSeq: key as Seq };
    };
    expect(segments(100_000, 1, 100_001, deep).length).toBe(100_001);
    lookUps = 0;
    expect(segments(100_000, 100_000, 100_001, deep)).toEqual([
      [99_999, 100_000, 100_000],
      [100_000, 100_001, 100_001],
    ]);
    expect(lookUps).toBe(2);
  });
});
