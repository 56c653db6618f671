/** Reading records and what is kept beside them. */

import assert from "node:assert/strict";
import { PAGE_BYTES_SOFT_MAX, PAGE_RECORDS_DEFAULT } from "../../journal/index.ts";
import type { CaseTable } from "./conformance.ts";
import { append, created, fence, output, pagesOf, recordsOf, rejectsWith, seq, textsOf, uid } from "./fixtures.ts";
import type { JournalStore } from "../../journal/index.ts";

/** A session "a" with this many records, whose texts are their seqs. */
async function filled(store: JournalStore, count: number): Promise<void> {
  await created(store, "a");
  for (let from = 1; from <= count; from += 500) {
    const size = Math.min(500, count - from + 1);
    await append(store, "a", ...Array.from({ length: size }, (_, index) => output(`${from + index}`)));
  }
}

export const READ_CASES: CaseTable = {
  "a read gives pages in order, of 256 records unless asked otherwise": async ({ store }) => {
    await filled(store, PAGE_RECORDS_DEFAULT + 44);
    const pages = await pagesOf(store, { session: uid("a") });
    assert.deepEqual(
      pages.map((page) => page.length),
      [PAGE_RECORDS_DEFAULT, 44],
    );
    const small = await pagesOf(store, { session: uid("a"), pageRecordsMax: 7, toSeq: seq(20) });
    assert.deepEqual(
      small.map((page) => page.map((record) => record.seq)),
      [
        [1, 2, 3, 4, 5, 6, 7],
        [8, 9, 10, 11, 12, 13, 14],
        [15, 16, 17, 18, 19, 20],
      ],
    );
  },

  "a page ends at about 1 MiB": async ({ store }) => {
    await created(store, "a");
    const text = "x".repeat(300_000);
    await append(store, "a", ...Array.from({ length: 10 }, () => output(text)));
    const pages = await pagesOf(store, { session: uid("a") });
    assert.equal(pages.flat().length, 10);
    for (const page of pages) {
      const bytes = page.slice(0, -1).reduce((sum, record) => sum + record.bytes.length, 0);
      assert.ok(bytes < PAGE_BYTES_SOFT_MAX, "a page goes over its size by one record at most");
    }
    assert.ok(pages.length >= 3);
  },

  "a range includes both ends and is cut at the head": async ({ store }) => {
    await filled(store, 10);
    const range = async (fromSeq?: number, toSeq?: number) => {
      const bounds = { ...(fromSeq === undefined ? {} : { fromSeq: seq(fromSeq) }), ...(toSeq === undefined ? {} : { toSeq: seq(toSeq) }) };
      return textsOf((await pagesOf(store, { session: uid("a"), ...bounds })).flat()).join(" ");
    };
    assert.equal(await range(3, 5), "3 4 5");
    assert.equal(await range(0, 2), "1 2");
    assert.equal(await range(9), "9 10");
    assert.equal(await range(10, 10), "10");
    assert.equal(await range(8, 99), "8 9 10");
    assert.equal(await range(11), "");
    assert.equal(await range(5, 4), "");
    assert.equal(await range(1, 0), "");
  },

  "an unknown session and an empty one have no page": async ({ store }) => {
    await created(store, "empty");
    assert.deepEqual(await pagesOf(store, { session: uid("nobody") }), []);
    assert.deepEqual(await pagesOf(store, { session: uid("empty") }), []);
  },

  "a read ends at the head it began with": async ({ store }) => {
    await filled(store, 6);
    const seen: number[] = [];
    for await (const page of store.read({ session: uid("a"), pageRecordsMax: 2 })) {
      seen.push(...page.map((record) => record.seq));
      assert.ok(seen.length <= 6, "the read ends");
      await append(store, "a", output("later"));
    }
    assert.deepEqual(seen, [1, 2, 3, 4, 5, 6]);
  },

  "reads that run side by side, and a read that is left, do not disturb each other": async ({ store }) => {
    await filled(store, 30);
    for await (const page of store.read({ session: uid("a"), pageRecordsMax: 5 })) {
      assert.equal(page.length, 5);
      break;
    }
    const reads = await Promise.all([1, 7, 30].map((pageRecordsMax) => pagesOf(store, { session: uid("a"), pageRecordsMax })));
    for (const pages of reads) assert.equal(pages.flat().length, 30);
  },

  "bounds that are no seqs and pages of no records are INVALID_ARGUMENT": async ({ store }) => {
    await filled(store, 1);
    for (const wrong of [{ fromSeq: seq(-1) }, { toSeq: seq(1.5) }, { pageRecordsMax: 0 }, { pageRecordsMax: 0.5 }]) {
      await rejectsWith(pagesOf(store, { session: uid("a"), ...wrong }), "invalid_argument");
    }
  },

  "a read stops when its signal fires": async ({ store }) => {
    await filled(store, 10);
    const controller = new AbortController();
    const read = async () => {
      for await (const page of store.read({ session: uid("a"), pageRecordsMax: 2, signal: controller.signal })) {
        if (page[0]?.seq === 3) controller.abort();
      }
    };
    await rejectsWith(read(), "cancelled");
    await rejectsWith(pagesOf(store, { session: uid("a"), signal: controller.signal }), "cancelled");
  },

  "what is kept beside records is read by seq, and is not in the record": async (test) => {
    await created(test.store, "a");
    const asides = [undefined, Uint8Array.of(1, 2, 3), undefined, new Uint8Array(0), Uint8Array.of(255)];
    const events = asides.map((aside, index) => ({ event: output(`${index}`), aside }));
    await test.store.append({ session: uid("a"), writer: { kind: "hold", fence: fence(0) }, events });
    await test.reopen?.();
    const read = async (fromSeq: number, toSeq: number) => {
      const found = await test.store.readAsides({ session: uid("a"), fromSeq: seq(fromSeq), toSeq: seq(toSeq) });
      return [...found].map(([at, bytes]) => [at, [...bytes]]).toSorted((left, right) => Number(left[0]) - Number(right[0]));
    };
    assert.deepEqual(await read(1, 99), [
      [2, [1, 2, 3]],
      [4, []],
      [5, [255]],
    ]);
    assert.deepEqual(await read(3, 4), [[4, []]]);
    assert.deepEqual([...(await test.store.readAsides({ session: uid("nobody") }))], []);
    assert.deepEqual(textsOf(await recordsOf(test.store, "a")), ["0", "1", "2", "3", "4"]);
  },
};
