/** The statements that the writer runs. Its thread loads this and not what makes lists of them. */

/**
 * The statements that change the journal. An append in the middle of a turn runs `insertRecord` alone; only what changes a
 * listing's filters touches a session index. Hashes come as text and are kept as bytes.
 */
export const STATEMENTS = {
  insertRecord: `INSERT INTO records (session, seq, kind, fence, version, update_time_ms, content_hash, bytes)
    VALUES (?, ?, ?, ?, ?, ?, unhex(?), ?)`,
  insertAside: "INSERT INTO asides (session, seq, bytes) VALUES (?, ?, ?)",
  insertSeed: "INSERT INTO seeds (key, bytes) VALUES (?, ?)",
  insertSession: `INSERT INTO sessions (key, uid, project, name, create_time_ms, parent_key, fork_seq, deleted, open_turn, open_approval,
    update_time_ms, version, fence, last_seq, head_hash, state, compute)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, unhex(?), ?, ?)`,
  advanceSession: "UPDATE sessions SET update_time_ms = ?, version = ?, fence = ?, last_seq = ?, head_hash = unhex(?) WHERE key = ?",
  changeSession: `UPDATE sessions SET open_turn = ?, open_approval = ?, update_time_ms = ?, version = ?, fence = ?, last_seq = ?,
    head_hash = unhex(?), state = ?, compute = ? WHERE key = ?`,
  settleSession: "UPDATE sessions SET deleted = ?, kept_seq = ? WHERE key = ?",
  cutRecords: "DELETE FROM records WHERE session = ? AND seq > ?",
  cutAsides: "DELETE FROM asides WHERE session = ? AND seq > ?",
  removeSession: "DELETE FROM sessions WHERE key = ?",
  removeSeed: "DELETE FROM seeds WHERE key = ?",
  putReceipt: `INSERT INTO receipts (session, key, call_id, call_seq, state, result_seq, settled_by) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (session, key) DO UPDATE SET call_id = excluded.call_id, call_seq = excluded.call_seq, state = excluded.state,
      result_seq = excluded.result_seq, settled_by = excluded.settled_by`,
  removeReceipts: "DELETE FROM receipts WHERE session = ?",
  probe: "INSERT INTO probes (bytes) VALUES (zeroblob(?))",
  clearProbe: "DELETE FROM probes",
} as const;

/** The name of a statement. */
export type StatementName = keyof typeof STATEMENTS;

/** A value of a statement's parameters. */
export type WriteValue = number | string | Uint8Array | null;

/** The statements by number, which is how a list names them. */
export const STATEMENT_NAMES = Object.keys(STATEMENTS) as readonly StatementName[];

/** How many values each statement takes, by its number. */
export const VALUE_COUNTS: readonly number[] = STATEMENT_NAMES.map((name) => STATEMENTS[name].split("?").length - 1);

/**
 * A list of statements. It is flat: an object for each statement costs more than the statement, when it is made and again when
 * it crosses to a thread.
 */
export interface WriteList {
  /** The number of each statement. */
  readonly statements: number[];
  /** The values of all statements, one after the other. */
  readonly values: WriteValue[];
}
