import { describe, expect, it } from "vitest";
import type { Fence, Seq } from "../base/index.ts";
import { PAGE_BYTES_SOFT_MAX } from "./limits.ts";
import { pagesOf, type ReadRun } from "./paging.ts";
import type { StoredRecord } from "./record.ts";

function record(seq: number, bytes = 10): StoredRecord {
  return { seq: seq as Seq, kind: 3, contentHash: `${seq}`, fence: 1 as Fence, bytes: new Uint8Array(bytes) };
}

function reading(records: readonly StoredRecord[]): ReadRun {
  return (_, from, to, recordsMax, bytesMax) => {
    const run: StoredRecord[] = [];
    let bytes = 0;
    for (const found of records.filter(({ seq }) => seq >= from && seq <= to).slice(0, recordsMax)) {
      run.push(found);
      bytes += found.bytes.length;
      if (bytes >= bytesMax) break;
    }
    return run;
  };
}

const segment = (key: number, from: number, to: number) => ({ key, fromSeq: from as Seq, toSeq: to as Seq });
const seqs = (pages: Iterable<StoredRecord[]>) => [...pages].map((page) => page.map(({ seq }) => seq));

describe("pagesOf", () => {
  const ten = Array.from({ length: 10 }, (_, index) => record(index + 1));

  it("fills pages across segments", () => {
    const pages = pagesOf([segment(1, 1, 3), segment(2, 4, 4), segment(3, 5, 10)], 4, reading(ten));
    expect(seqs(pages)).toEqual([
      [1, 2, 3, 4],
      [5, 6, 7, 8],
      [9, 10],
    ]);
  });

  it("ends a page at its size in bytes, which one record may exceed", () => {
    const half = PAGE_BYTES_SOFT_MAX / 2;
    const records = [record(1, half), record(2, half), record(3, 5), record(4, 2 * PAGE_BYTES_SOFT_MAX), record(5)];
    expect(seqs(pagesOf([segment(1, 1, 3), segment(2, 4, 5)], 100, reading(records)))).toEqual([[1, 2], [3, 4], [5]]);
  });

  it("reads no more than the page that is asked for", () => {
    let reads = 0;
    const counting: ReadRun = (...range) => {
      reads++;
      return reading(ten)(...range);
    };
    const pages = pagesOf([segment(1, 1, 10)], 2, counting);
    pages.next();
    expect(reads).toBe(1);
  });

  it("is DATA_LOSS where a record is missing, at the start, inside or at the end", () => {
    for (const missing of [1, 5, 10]) {
      const pages = pagesOf([segment(1, 1, 10)], 100, reading(ten.filter(({ seq }) => seq !== missing)));
      expect(() => [...pages]).toThrow(expect.objectContaining({ code: "data_loss" }));
    }
  });
});
