/**
 * Reading the journal's file, on a connection that cannot write. Every query is one short read transaction, so that readers
 * never keep the log from being checkpointed.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Seq, SessionUid } from "../../base/index.ts";
import { RECLAIM_RECORDS_MAX, sliceFloorOf } from "../../journal/index.ts";
import type {
  Committed,
  ListRequest,
  OriginOf,
  ReadRun,
  Receipt,
  ReceiptQuery,
  RecordSize,
  SessionState,
  StoredRecord,
} from "../../journal/index.ts";
import { openReader } from "./connection.ts";
import { toStoreError } from "./faults.ts";
import { listQueryOf } from "./list-query.ts";
import { wholeBytes } from "./record-bytes.ts";
import { SESSION_COLUMNS, SESSION_JOINS, stateOf } from "./session-row.ts";

/** What is durable in the file. Every method throws a HoldfastError where the file cannot be read. */
export class JournalReader implements Omit<Committed, "load"> {
  readonly #db: DatabaseSync;
  readonly #session: StatementSync;
  readonly #name: StatementSync;
  readonly #origin: StatementSync;
  readonly #hash: StatementSync;
  readonly #run: StatementSync;
  readonly #runBytes: StatementSync;
  readonly #asides: StatementSync;
  readonly #needed: StatementSync;
  readonly #sizes: StatementSync;
  readonly #receipt: StatementSync;
  readonly #unsettled: StatementSync;
  /** Prepared listings, by their SQL: there are few combinations of filters. */
  readonly #lists = new Map<string, StatementSync>();

  constructor(path: string) {
    this.#db = openReader(path);
    this.#session = this.#db.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions AS s ${SESSION_JOINS} WHERE s.uid = ?`);
    this.#name = this.#db.prepare("SELECT 1 FROM sessions WHERE project = ? AND name = ? AND name <> '' AND deleted = 0");
    this.#origin = this.#db.prepare("SELECT parent_key AS key, fork_seq AS forkSeq FROM sessions WHERE key = ? AND parent_key IS NOT NULL");
    this.#hash = this.#db.prepare("SELECT lower(hex(content_hash)) AS hash FROM records WHERE session = ? AND seq = ?");
    const range = "FROM records WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ?";
    this.#run = this.#db.prepare(`SELECT seq, kind, lower(hex(content_hash)) AS contentHash, fence, bytes ${range}`);
    this.#runBytes = this.#db.prepare(`SELECT coalesce(sum(length(bytes)), 0) AS bytes FROM (SELECT bytes ${range})`);
    this.#asides = this.#db.prepare("SELECT seq, bytes FROM asides WHERE session = ? AND seq BETWEEN ? AND ?");
    this.#needed = this.#db.prepare(`SELECT coalesce(max(min(fork_seq, coalesce(kept_seq, fork_seq))), 0) AS seq
      FROM sessions INDEXED BY sessions_by_parent WHERE parent_key = (SELECT key FROM sessions WHERE uid = ?)`);
    this.#sizes = this.#db.prepare(`SELECT seq, length(bytes) AS bytes FROM records
      WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq DESC LIMIT ?`);
    const receipt = `SELECT key, call_id AS callId, call_seq AS callSeq, state, result_seq AS resultSeq, settled_by AS settledBy FROM receipts`;
    this.#receipt = this.#db.prepare(`${receipt} WHERE session = ? AND key = ?`);
    this.#unsettled = this.#db.prepare(`${receipt} WHERE session = ? AND state IN ('started', 'unknown') ORDER BY call_seq`);
  }

  /** The durable state of a session, without its lease. */
  state(session: SessionUid): SessionState | undefined {
    const row = this.#guard(() => this.#session.get(session));
    return row === undefined ? undefined : this.#guard(() => stateOf(row));
  }

  nameTaken(project: string, name: string): boolean {
    return this.#guard(() => this.#name.get(project, name)) !== undefined;
  }

  readonly originOf: OriginOf = (key) => {
    const row = this.#guard(() => this.#origin.get(key));
    return row === undefined ? undefined : (row as { key: number; forkSeq: Seq });
  };

  hashAt(key: number, seq: Seq): string | undefined {
    const row = this.#guard(() => this.#hash.get(key, seq));
    return row === undefined ? undefined : (row as { hash: string }).hash;
  }

  neededSeq(session: SessionUid): Seq {
    const row = this.#guard(() => this.#needed.get(session));
    return (row === undefined ? 0 : (row as { seq: number }).seq) as Seq;
  }

  sliceFloor(key: number, floorSeq: Seq, toSeq: Seq): Seq {
    const newestFirst = this.#guard(() => this.#sizes.all(key, floorSeq, toSeq, RECLAIM_RECORDS_MAX).map(sizeOf));
    return sliceFloorOf(newestFirst, floorSeq);
  }

  /**
   * The run of records that `pagesOf` asks for. Rows are taken all at once, which is half again as fast as one by one, unless
   * they are more than a page; their size costs little, since SQLite reads no large value for it.
   */
  readonly readRun: ReadRun = (key, fromSeq, toSeq, recordsMax, bytesMax) =>
    this.#guard(() => {
      const size = this.#runBytes.get(key, fromSeq, toSeq, recordsMax) as { bytes: number };
      if (size.bytes <= bytesMax) return this.#run.all(key, fromSeq, toSeq, recordsMax).map(recordOf);
      const run: StoredRecord[] = [];
      let bytes = 0;
      for (const row of this.#run.iterate(key, fromSeq, toSeq, recordsMax)) {
        const record = recordOf(row);
        run.push(record);
        bytes += record.bytes.length;
        if (bytes >= bytesMax) break;
      }
      return run;
    });

  asides(key: number, fromSeq: Seq, toSeq: Seq): { readonly seq: Seq; readonly bytes: Uint8Array }[] {
    return this.#guard(() => this.#asides.all(key, fromSeq, toSeq).map((row) => row as { seq: Seq; bytes: Uint8Array }));
  }

  /** The receipts that `query` asks for, of the session with this key. */
  receipts(key: number, query: ReceiptQuery): Receipt[] {
    return this.#guard(() => (query.key === undefined ? this.#unsettled.all(key) : this.#receipt.all(key, query.key)).map(receiptOf));
  }

  /** The states of a listing, one more than its limit where there are more. */
  list(request: ListRequest): SessionState[] {
    const { sql, values } = listQueryOf(request);
    return this.#guard(() =>
      this.#prepared(sql)
        .all(...values)
        .map(stateOf),
    );
  }

  /** The greatest key that a session has; 0 in an empty journal. */
  lastKey(): number {
    const row = this.#guard(() => this.#db.prepare("SELECT coalesce(max(key), 0) AS key FROM sessions").get());
    return row === undefined ? 0 : (row as { key: number }).key;
  }

  close(): void {
    this.#db.close();
  }

  #prepared(sql: string): StatementSync {
    const prepared = this.#lists.get(sql) ?? this.#db.prepare(sql);
    this.#lists.set(sql, prepared);
    return prepared;
  }

  #guard<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw toStoreError(error);
    }
  }
}

interface ReceiptColumns extends Omit<Receipt, "resultSeq" | "settledBy"> {
  readonly resultSeq: Seq | null;
  readonly settledBy: string | null;
}

function receiptOf(row: object): Receipt {
  const { resultSeq, settledBy, ...rest } = row as ReceiptColumns;
  return { ...rest, resultSeq: resultSeq ?? undefined, settledBy: settledBy ?? undefined };
}

function sizeOf(row: object): RecordSize {
  return row as RecordSize;
}

/** The query names its columns as a record's fields, and a STRICT table holds their types. */
function recordOf(row: object): StoredRecord {
  const { seq, kind, contentHash, fence, bytes } = row as StoredRecord;
  return { seq, kind, contentHash, fence, bytes: wholeBytes(bytes, contentHash) };
}
