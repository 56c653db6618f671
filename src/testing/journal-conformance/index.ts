/** The conformance suite of the JournalStore interface: what a store of your own is tested with. */

import { ADOPT_CASES } from "./adopt-cases.ts";
import { APPEND_CASES } from "./append-cases.ts";
import { casesOf, type ConformanceCase, type OpenStoreUnderTest } from "./conformance.ts";
import { CREATE_CASES } from "./create-cases.ts";
import { FORK_CASES } from "./fork-cases.ts";
import { LIFETIME_CASES } from "./lifetime-cases.ts";
import { LIST_CASES } from "./list-cases.ts";
import { RANDOM_CASES } from "./random-cases.ts";
import { READ_CASES } from "./read-cases.ts";
import { RECEIPT_CASES } from "./receipt-cases.ts";
import { RECLAIM_CASES } from "./reclaim-cases.ts";
import { WATCH_CASES } from "./watch-cases.ts";
import { WRITER_CASES } from "./writer-cases.ts";

export type { ConformanceCase, OpenStoreUnderTest, StoreUnderTest } from "./conformance.ts";
export { storeUnderTest, type OpenStore, type UnderTestOptions } from "./under-test.ts";

/** Every case, for stores that `open` opens. See the head of `conformance.ts` for how to run them. */
export function journalStoreCases(open: OpenStoreUnderTest): readonly ConformanceCase[] {
  return [
    ...casesOf("create", CREATE_CASES, open),
    ...casesOf("append", APPEND_CASES, open),
    ...casesOf("writer", WRITER_CASES, open),
    ...casesOf("read", READ_CASES, open),
    ...casesOf("list", LIST_CASES, open),
    ...casesOf("fork", FORK_CASES, open),
    ...casesOf("receipt", RECEIPT_CASES, open),
    ...casesOf("reclaim", RECLAIM_CASES, open),
    ...casesOf("adopt", ADOPT_CASES, open),
    ...casesOf("watch", WATCH_CASES, open),
    ...casesOf("lifetime", LIFETIME_CASES, open),
    ...casesOf("random", RANDOM_CASES, open),
  ];
}
