/**
 * Records a second on one core, for records of 300 bytes: the canonical text and its hash alone, and the whole check of a
 * journal as it is stored (decode, canonical text, hash, links). SHA-256 alone of the same texts says how much is left to gain.
 */

import { canonicalRecord, contentHash, decodeLogRecord } from "../src/canon/index.ts";
import { fenceOf } from "../src/base/index.ts";
import { createChainVerifier, EMPTY_PROJECTION, seal, type StoredRecord } from "../src/journal/index.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { turnEvents } from "./events.ts";
import { perSecond, takeTurns } from "./statistics.ts";
import { PORTS } from "./stores.ts";

const RECORD_BYTES = 300;
const RECORDS = 60_000;
const TARGET: Target = { of: "value", bound: "at-least", limit: 70_000 };

/** Measures the `verify` group. */
export async function measureVerify(context: BenchContext): Promise<Row[]> {
  const journal = sealedJournal(context.scale(RECORDS, RECORDS / 4));
  const decoded = journal.map(({ bytes }) => decodeLogRecord(bytes));
  const texts = decoded.map(({ event, prevHash, seq }) => canonicalRecord({ event: event!, prevHash, seq }));
  const bytes = journal.reduce((sum, record) => sum + record.bytes.length, 0) / journal.length;
  const { digest } = PORTS;
  const rounds = await takeTurns(context, "verify", context.scale(9, 3), {
    digest: () => timed(texts, (text) => digest.sha256Hex(text)),
    hash: () => timed(decoded, ({ event, prevHash, seq }) => contentHash({ event: event!, prevHash, seq }, digest)),
    verify: () => check(journal),
  });
  const figure = { group: "verify", unit: "records/s" } as const;
  const note = `${Math.round(bytes)} bytes a record`;
  return [
    { ...figure, name: "SHA-256 alone of the canonical text", value: rounds.digest.median, spread: rounds.digest.spread },
    { ...figure, name: "canonical text + hash", value: rounds.hash.median, spread: rounds.hash.spread, note },
    {
      ...figure,
      name: "whole check: decode, text, hash, links",
      value: rounds.verify.median,
      spread: rounds.verify.spread,
      target: TARGET,
      note,
    },
  ];
}

function timed<T>(items: readonly T[], work: (item: T) => string): number {
  const sinceMs = performance.now();
  let characters = 0;
  for (const item of items) characters += work(item).length;
  const rate = perSecond(items.length, sinceMs);
  if (characters !== items.length * 64) throw new Error("a hash has not 64 digits");
  return rate;
}

/** A journal of turns, sealed as a store seals it. */
function sealedJournal(count: number): StoredRecord[] {
  const eventAt = turnEvents(RECORD_BYTES);
  const records: StoredRecord[] = [];
  let projection = EMPTY_PROJECTION;
  for (let index = 0; index < count; index++) {
    const sealed = seal(projection, fenceOf(1), [{ event: eventAt(index) }], PORTS.digest);
    projection = sealed.projection;
    records.push(...sealed.records);
  }
  return records;
}

/** The check that `Journal.Verify` makes. A journal that it does not call intact would make the figure worthless. */
function check(journal: readonly StoredRecord[]): number {
  const last = journal.at(-1)!;
  const sinceMs = performance.now();
  const verifier = createChainVerifier(PORTS.digest);
  verifier.pushPage(journal);
  const verdict = verifier.finish({ seq: last.seq, hash: last.contentHash });
  const rate = perSecond(journal.length, sinceMs);
  if (verdict.kind !== "intact" || verdict.records !== journal.length) throw new Error("the journal does not verify");
  return rate;
}
