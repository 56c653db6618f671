/**
 * A draft as statements: what goes to the writer, in this thread or in another.
 */

import { isLive, hasOpenApproval } from "../../journal/index.ts";
import type { Draft, DraftChange, DraftRecord, Receipt, SessionState } from "../../journal/index.ts";
import { shortened } from "./record-bytes.ts";
import { encodeCompute, encodeSeed, encodeState, sameState } from "./row-codec.ts";
import { STATEMENT_NAMES, type StatementName, type WriteList, type WriteValue } from "./statements.ts";

const NUMBERS = new Map(STATEMENT_NAMES.map((name, index) => [name, index]));

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
  for (const { key, receipt } of draft.receipts) addReceipt(list, key, receipt);
  for (const { key, aboveSeq } of draft.cuts) {
    add(list, "cutRecords", key, aboveSeq);
    add(list, "cutAsides", key, aboveSeq);
  }
  return list;
}

function emptyList(): WriteList {
  return { statements: [], values: [] };
}

function add(list: WriteList, statement: StatementName, ...values: WriteValue[]): void {
  list.statements.push(NUMBERS.get(statement)!);
  for (const value of values) list.values.push(value);
}

function addRecord(list: WriteList, { key, record, aside, ends }: DraftRecord): void {
  const { seq, kind, fence, contentHash, bytes } = record;
  add(
    list,
    "insertRecord",
    key,
    seq,
    kind,
    fence,
    ends?.version ?? null,
    ends?.updateTimeMs ?? null,
    contentHash,
    shortened(bytes, contentHash),
  );
  if (aside !== undefined) add(list, "insertAside", key, seq, aside);
}

/**
 * What a change makes of the session's row: nothing in the middle of a turn, where the newest record says all that has changed. What
 * only a row says (filters, state, whether the session can be used) is the same then, the open turn included.
 */
function addChange(list: WriteList, { before, after, removed, recordedVersion }: DraftChange): void {
  if (removed) return addRemoval(list, after.key);
  if (before === undefined) return addNew(list, after);
  if (before.version === after.version) return;
  const isSettled = isLive(before) === isLive(after) && before.keptSeq === after.keptSeq;
  const { key, updateTimeMs, version, fence, projection, compute } = after;
  const { lastSeq, headHash } = projection;
  if (isSettled && sameState(before.projection, projection) && before.compute === compute) {
    if (recordedVersion === version && projection.openTurn !== undefined && isLive(after)) return;
    add(list, "advanceSession", updateTimeMs, version, fence, lastSeq, headHash, key);
  } else {
    const flags = [flag(projection.openTurn !== undefined), flag(hasOpenApproval(after))];
    const state = [encodeState(after), encodeCompute(compute)];
    add(list, "changeSession", ...flags, updateTimeMs, version, fence, lastSeq, headHash, ...state, key);
  }
  if (!isSettled) addSettling(list, after);
}

/** Whether the session can be used, and how far it reaches where it cannot. */
function addSettling(list: WriteList, state: SessionState): void {
  add(list, "settleSession", flag(!isLive(state)), state.keptSeq ?? null, state.key);
}

function addRemoval(list: WriteList, key: number): void {
  add(list, "removeSession", key);
  add(list, "removeSeed", key);
  add(list, "removeReceipts", key);
}

function addReceipt(list: WriteList, key: number, receipt: Receipt): void {
  const { callId, callSeq, state, resultSeq, settledBy } = receipt;
  add(list, "putReceipt", key, receipt.key, callId, callSeq, state, resultSeq ?? null, settledBy ?? null);
}

function addNew(list: WriteList, state: SessionState): void {
  const { key, seed, parent, updateTimeMs, version, fence, projection, compute } = state;
  const place = [parent?.key ?? null, parent?.forkSeq ?? null];
  const flags = [flag(!isLive(state)), flag(projection.openTurn !== undefined), flag(hasOpenApproval(state))];
  const head = [updateTimeMs, version, fence, projection.lastSeq, projection.headHash];
  const rest = [encodeState(state), encodeCompute(compute)];
  add(list, "insertSession", key, seed.uid, seed.project, seed.name, seed.createTimeMs, ...place, ...flags, ...head, ...rest);
  add(list, "insertSeed", key, encodeSeed(seed));
  if (state.keptSeq !== undefined) addSettling(list, state);
}

function flag(set: boolean): number {
  return set ? 1 : 0;
}
