/**
 * What a session has spent, as its journal tells it.
 *
 * Invariants:
 * - Only a session's own records count: what came with a fork is the parent's spending, and a replay records nothing.
 * - A completion counts by what the provider said of it, whether its harness reports usage or not. Usage that a harness reports of
 *   something else counts as well.
 * - Time counts between records of one turn under one fence: while a turn waits for a person, or for a host, it spends none.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Seq } from "../base/ids.ts";
import { decodeLogRecord } from "../canon/index.ts";
import type { Event } from "../gen/agentsessions/v1/common_pb.ts";
import { ModelFactsSchema, SpentSchema } from "../gen/holdfast/v1/beside_pb.ts";
import { EventKind } from "../gen/agentsessions/v1/common_pb.ts";
import type { JournalStore, SessionRow, StoredRecord } from "../journal/index.ts";
import { INBOX_TOOL, type Usage } from "../spi/index.ts";

/** Sums of what was spent. */
export interface Spending {
  /** Input and output tokens; reasoning is among the latter. */
  tokens: number;
  costNanoDollars: number;
  turns: number;
  /** Calls that were recorded for the host to run, run or not. */
  toolCalls: number;
  wallMs: number;
}

/** Nothing spent. */
export function nothingSpent(): Spending {
  return { tokens: 0, costNanoDollars: 0, turns: 0, toolCalls: 0, wallMs: 0 };
}

/** Adds to sums. */
export function addSpending(to: Spending, more: Partial<Spending>): void {
  to.tokens += more.tokens ?? 0;
  to.costNanoDollars += more.costNanoDollars ?? 0;
  to.turns += more.turns ?? 0;
  to.toolCalls += more.toolCalls ?? 0;
  to.wallMs += more.wallMs ?? 0;
}

/** The tokens of a usage. */
export function tokensOf({ inputTokens, outputTokens }: Pick<Usage, "inputTokens" | "outputTokens">): number {
  return Number(inputTokens + outputTokens);
}

/** Sums as they are kept beside an END. */
export function encodedSpending(spending: Spending): Uint8Array {
  const { tokens, costNanoDollars, turns, toolCalls, wallMs } = spending;
  const value = { tokens, costNanoDollars, turns, toolCalls, wallMs: Math.round(wallMs) };
  return toBinary(SpentSchema, create(SpentSchema, bigints(value)));
}

function bigints<Key extends string>(value: Readonly<Record<Key, number>>): Record<Key, bigint> {
  return Object.fromEntries(Object.entries<number>(value).map(([key, count]) => [key, BigInt(count)])) as Record<Key, bigint>;
}

function decodedSpending(bytes: Uint8Array): Spending {
  const { tokens, costNanoDollars, turns, toolCalls, wallMs } = fromBinary(SpentSchema, bytes);
  return {
    tokens: Number(tokens),
    costNanoDollars: Number(costNanoDollars),
    turns: Number(turns),
    toolCalls: Number(toolCalls),
    wallMs: Number(wallMs),
  };
}

/** What a session has spent itself, and what its last turn has. */
export interface SessionSpending {
  readonly session: Spending;
  readonly turn: Spending;
}

/** A session that ended in order is told by its last record; most others by a few. */
const FIRST_LOOK_RECORDS = 4;
const LOOK_RECORDS_MAX = 512;

/** Reads from the last END with sums on; the whole of the session's own records where there is none. */
export async function readSpending(journal: JournalStore, row: SessionRow): Promise<SessionSpending> {
  const forkSeq = row.parent?.forkSeq ?? 0;
  const { base, afterSeq } = await lastSums(journal, row, forkSeq);
  const sums = new SpendingSums(base);
  const session = row.seed.uid;
  for (let fromSeq = afterSeq + 1; fromSeq <= row.projection.lastSeq; fromSeq += LOOK_RECORDS_MAX) {
    const range = { session, fromSeq: fromSeq as Seq, toSeq: Math.min(fromSeq + LOOK_RECORDS_MAX - 1, row.projection.lastSeq) as Seq };
    const asides = await journal.readAsides(range);
    for await (const page of journal.read(range)) for (const record of page) sums.take(record, asides.get(record.seq));
  }
  return { session: sums.session, turn: sums.turn };
}

/** The last sums that are kept, looked for from the head back in steps that grow. */
async function lastSums(journal: JournalStore, row: SessionRow, forkSeq: number): Promise<{ base: Spending; afterSeq: number }> {
  const session = row.seed.uid;
  let count = FIRST_LOOK_RECORDS;
  for (let toSeq: number = row.projection.lastSeq; toSeq > forkSeq; toSeq -= count, count = Math.min(LOOK_RECORDS_MAX, count * 8)) {
    const fromSeq = Math.max(forkSeq + 1, toSeq - count + 1);
    const range = { session, fromSeq: fromSeq as Seq, toSeq: toSeq as Seq };
    const asides = await journal.readAsides(range);
    if (asides.size === 0) continue;
    const ends: Seq[] = [];
    for await (const page of journal.read(range)) {
      for (const { seq, kind } of page) if (kind === EventKind.EVENT_END && asides.has(seq)) ends.push(seq);
    }
    const last = ends.at(-1);
    const bytes = last === undefined ? undefined : asides.get(last);
    if (last !== undefined && bytes !== undefined) return { base: decodedSpending(bytes), afterSeq: last };
  }
  return { base: nothingSpent(), afterSeq: forkSeq };
}

/** Folds records, in order. */
class SpendingSums {
  readonly session: Spending;
  turn = nothingSpent();
  #isOpen = false;
  /** A model call waits for its completion. */
  #isCalling = false;
  /** The next USAGE is that of a completion which has been counted. */
  #isCounted = false;
  #last: { readonly fence: number; readonly timeMs: number } | undefined;

  constructor(base: Spending) {
    this.session = base;
  }

  take(record: StoredRecord, aside: Uint8Array | undefined): void {
    const { event } = decodeLogRecord(record.bytes);
    if (event === undefined) return;
    const timeMs = event.ts === undefined ? 0 : timestampMs(event.ts);
    if (this.#isOpen && this.#last?.fence === record.fence) this.#add({ wallMs: Math.max(0, timeMs - this.#last.timeMs) });
    this.#last = { fence: record.fence, timeMs };
    this.#event(event, aside);
  }

  #event({ body, kind }: Event, aside: Uint8Array | undefined): void {
    switch (body.case) {
      case "executionStart":
        this.turn = nothingSpent();
        this.#isOpen = true;
        return this.#add({ turns: 1 });
      case "model":
        this.#isCalling = true;
        this.#isCounted = false;
        return;
      case "message":
        if (kind !== EventKind.EVENT_INPUT && this.#isCalling) this.#completed(aside);
        return;
      case "error":
        this.#isCalling = false;
        return;
      case "usage":
        if (!this.#isCounted) this.#add({ tokens: tokensOf(body.value) });
        this.#isCounted = false;
        return;
      case "tool":
        // What waits for the harness is no tool that acts.
        return this.#add({ toolCalls: body.value.tool === INBOX_TOOL ? 0 : 1 });
      case "end":
        this.#isOpen = false;
        return;
      default:
        return;
    }
  }

  #completed(aside: Uint8Array | undefined): void {
    this.#isCalling = false;
    if (aside === undefined) return;
    const { inputTokens, outputTokens, costNanoDollars } = fromBinary(ModelFactsSchema, aside);
    this.#add({ costNanoDollars: Number(costNanoDollars ?? 0n) });
    if (inputTokens === undefined && outputTokens === undefined) return;
    this.#isCounted = true;
    this.#add({ tokens: tokensOf({ inputTokens: inputTokens ?? 0n, outputTokens: outputTokens ?? 0n }) });
  }

  #add(more: Partial<Spending>): void {
    addSpending(this.session, more);
    addSpending(this.turn, more);
  }
}
