/**
 * A draft as statements: what goes to the writer, in this thread or in another.
 */

import { isDeleted, hasOpenApproval } from "../../journal/index.ts";
import type { Draft, DraftChange, DraftRecord, SessionState } from "../../journal/index.ts";
import { encodeCompute, encodeSeed, encodeState, sameState } from "./row-codec.ts";

/**
 * The statements that change the journal. An append in the middle of a turn runs `insertRecord` and `advanceSession` and
 * touches no index but that of records; only what changes a listing's filters touches a session index.
 */
export const STATEMENTS = {
  insertRecord: "INSERT INTO records (session, seq, kind, fence, content_hash, bytes) VALUES (?, ?, ?, ?, ?, ?)",
  insertAside: "INSERT INTO asides (session, seq, bytes) VALUES (?, ?, ?)",
  insertSeed: "INSERT INTO seeds (key, bytes) VALUES (?, ?)",
  insertSession: `INSERT INTO sessions (key, uid, project, name, create_time_ms, parent_uid, parent_key, fork_seq, deleted, open_turn,
    open_approval, update_time_ms, version, fence, last_seq, head_hash, state, compute)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  advanceSession: "UPDATE sessions SET update_time_ms = ?, version = ?, fence = ?, last_seq = ?, head_hash = ? WHERE key = ?",
  changeSession: `UPDATE sessions SET open_turn = ?, open_approval = ?, update_time_ms = ?, version = ?, fence = ?, last_seq = ?,
    head_hash = ?, state = ?, compute = ? WHERE key = ?`,
  deleteSession: "UPDATE sessions SET deleted = 1 WHERE key = ?",
  probe: "INSERT INTO probes (bytes) VALUES (zeroblob(?))",
  clearProbe: "DELETE FROM probes",
} as const;

/** The name of a statement. */
export type StatementName = keyof typeof STATEMENTS;

/** A value of a statement's parameters. */
export type WriteValue = number | string | Uint8Array | null;

/** The statements by number, which is how a list names them. */
export const STATEMENT_NAMES = Object.keys(STATEMENTS) as readonly StatementName[];

const NUMBERS = new Map(STATEMENT_NAMES.map((name, index) => [name, index]));

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

const PROBE_BYTES = 65_536;

/** A write that leaves nothing behind but fails where there is no room: for asking whether there is some. */
export function probeList(): WriteList {
  const list = emptyList();
  add(list, "probe", PROBE_BYTES);
  add(list, "clearProbe");
  return list;
}

/** The statements that add the records of a draft from the one at `from` on. */
export function recordListOf(draft: Draft, from: number): WriteList {
  const list = emptyList();
  for (let index = from; index < draft.records.length; index++) addRecord(list, draft.records[index]!);
  return list;
}

/** The statements of a draft in an order in which each is valid, without its first `staged` records. */
export function writeListOf(draft: Draft, staged: number): WriteList {
  const list = recordListOf(draft, staged);
  for (const change of draft.changes()) addChange(list, change);
  return list;
}

function emptyList(): WriteList {
  return { statements: [], values: [] };
}

function add(list: WriteList, statement: StatementName, ...values: WriteValue[]): void {
  list.statements.push(NUMBERS.get(statement)!);
  for (const value of values) list.values.push(value);
}

function addRecord(list: WriteList, { key, record, aside }: DraftRecord): void {
  const { seq, kind, fence, contentHash, bytes } = record;
  add(list, "insertRecord", key, seq, kind, fence, contentHash, bytes);
  if (aside !== undefined) add(list, "insertAside", key, seq, aside);
}

function addChange(list: WriteList, { before, after }: DraftChange): void {
  if (before === undefined) return addNew(list, after);
  if (before.version === after.version) return;
  const { key, updateTimeMs, version, fence, projection, compute } = after;
  const { lastSeq, headHash } = projection;
  if (sameState(before.projection, projection) && before.compute === compute) {
    add(list, "advanceSession", updateTimeMs, version, fence, lastSeq, headHash, key);
  } else {
    const flags = [flag(projection.openTurn !== undefined), flag(hasOpenApproval(after))];
    const state = [encodeState(projection), encodeCompute(compute)];
    add(list, "changeSession", ...flags, updateTimeMs, version, fence, lastSeq, headHash, ...state, key);
  }
  if (isDeleted(projection) && !isDeleted(before.projection)) add(list, "deleteSession", key);
}

function addNew(list: WriteList, state: SessionState): void {
  const { key, seed, parent, updateTimeMs, version, fence, projection, compute } = state;
  const place = [parent?.uid ?? null, parent?.key ?? null, parent?.forkSeq ?? null];
  const flags = [flag(isDeleted(projection)), flag(projection.openTurn !== undefined), flag(hasOpenApproval(state))];
  const head = [updateTimeMs, version, fence, projection.lastSeq, projection.headHash];
  const rest = [encodeState(projection), encodeCompute(compute)];
  add(list, "insertSession", key, seed.uid, seed.project, seed.name, seed.createTimeMs, ...place, ...flags, ...head, ...rest);
  add(list, "insertSeed", key, encodeSeed(seed));
}

function flag(set: boolean): number {
  return set ? 1 : 0;
}
