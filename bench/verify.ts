/**
 * Records a second on one core, for records of 300 bytes: the canonical text and its hash alone, and the whole check of a
 * journal as it is stored (decode, canonical text, hash, links). SHA-256 alone of the same texts says how much is left to gain.
 */

import { canonicalRecord, contentHash, decodeLogRecord } from "../src/canon/index.ts";
import { fenceOf } from "../src/base/index.ts";
import { createChainVerifier, EMPTY_PROJECTION, seal, type StoredRecord } from "../src/journal/index.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { turnEvents } from "./events.ts";
import { Stopwatch, takeTurns, type Figure, type Rounds } from "./statistics.ts";
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
  const note = `${Math.round(bytes)} bytes a record`;
  return [
    rowOf("SHA-256 alone of the canonical text", rounds.digest),
    { ...rowOf("canonical text + hash", rounds.hash), note },
    { ...rowOf("whole check: decode, text, hash, links", rounds.verify), target: TARGET, note },
  ];
}

function rowOf(name: string, { median: value, spread, cpuUs }: Rounds): Row {
  return { group: "verify", name, value, unit: "records/s", spread, cpuUs };
}

function timed<T>(items: readonly T[], work: (item: T) => string): Figure {
  const watch = new Stopwatch();
  let characters = 0;
  for (const item of items) characters += work(item).length;
  const figure = watch.figure(items.length);
  if (characters !== items.length * 64) throw new Error("a hash has not 64 digits");
  return figure;
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
function check(journal: readonly StoredRecord[]): Figure {
  const last = journal.at(-1)!;
  const watch = new Stopwatch();
  const verifier = createChainVerifier(PORTS.digest);
  verifier.pushPage(journal);
  const verdict = verifier.finish({ seq: last.seq, hash: last.contentHash });
  const figure = watch.figure(journal.length);
  if (verdict.kind !== "intact" || verdict.records !== journal.length) throw new Error("the journal does not verify");
  return figure;
}
