/**
 * A session's row in the file, and the state it stands for.
 *
 * The row of a session with an open turn may be behind: an append in the middle of a turn leaves it as it was, and its last record
 * says what the row would say. So such a row is read with the session's newest record above its `last_seq`, if there is one; nothing
 * else of it can have changed. Rows without an open turn are current, and reading them touches no record.
 */

import { HoldfastError, type Fence, type Seq, type SessionUid } from "../../base/index.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { ForkPoint, SessionState } from "../../journal/index.ts";
import { decodeCompute, decodeSeed, decodeState } from "./row-codec.ts";

/** The columns of a session as it is, from `SESSION_JOINS`. */
export const SESSION_COLUMNS = `s.key, s.uid, s.project, s.name, s.create_time_ms AS createTimeMs, parents.uid AS parentUid,
  s.parent_key AS parentKey, s.fork_seq AS forkSeq, s.deleted, s.state, s.compute, s.kept_seq AS keptSeq, seeds.bytes AS seed,
  iif(newest.seq IS NULL, s.update_time_ms, newest.update_time_ms) AS updateTimeMs,
  iif(newest.seq IS NULL, s.version, newest.version) AS version,
  coalesce(newest.fence, s.fence) AS fence, coalesce(newest.seq, s.last_seq) AS lastSeq,
  lower(hex(coalesce(newest.content_hash, s.head_hash))) AS headHash`;

/** What a session's row `s` is read with: its seed, its parent's uid, its newest record where the row is behind. */
export const SESSION_JOINS = `CROSS JOIN seeds ON seeds.key = s.key
  LEFT JOIN sessions AS parents ON parents.key = s.parent_key
  LEFT JOIN records AS newest ON newest.position =
    (SELECT position FROM records WHERE s.open_turn = 1 AND session = s.key AND seq > s.last_seq ORDER BY seq DESC LIMIT 1)`;

/** What `SESSION_COLUMNS` selects. */
interface SessionColumns {
  readonly key: number;
  readonly uid: string;
  readonly project: string;
  readonly name: string;
  readonly createTimeMs: number;
  readonly parentUid: string | null;
  readonly parentKey: number | null;
  readonly forkSeq: number | null;
  readonly deleted: number;
  readonly updateTimeMs: number | null;
  readonly version: number | null;
  readonly fence: number;
  readonly lastSeq: number;
  readonly headHash: string;
  readonly state: string;
  readonly compute: Uint8Array | null;
  readonly keptSeq: number | null;
  readonly seed: Uint8Array;
}

/** The state of a row of `SESSION_COLUMNS`, without a lease. Throws DATA_LOSS where the row cannot be what a store wrote. */
export function stateOf(row: object): SessionState {
  try {
    return decodedState(row as SessionColumns);
  } catch (error) {
    throw new HoldfastError("data_loss", "journal: a session's row is damaged; restore the file from a copy", { cause: error });
  }
}

function decodedState(row: SessionColumns): SessionState {
  const { key, updateTimeMs, version, fence, lastSeq, headHash, deleted, keptSeq } = row;
  if (version === null || updateTimeMs === null) throw new Error("the newest record ends no append");
  const deletionState = deleted === 0 ? DeletionState.DELETION_ACTIVE : DeletionState.DELETION_PENDING;
  const { uid, project, name, createTimeMs } = row;
  return {
    key,
    seed: decodeSeed({ uid, project, name, createTimeMs }, row.seed),
    parent: parentOf(row),
    updateTimeMs,
    version,
    fence: fence as Fence,
    lease: undefined,
    compute: decodeCompute(row.compute),
    projection: decodeState(row.state, { lastSeq: lastSeq as Seq, headHash, deletionState }),
    keptSeq: keptSeq === null ? undefined : (keptSeq as Seq),
  };
}

function parentOf({ parentUid, parentKey, forkSeq }: SessionColumns): ForkPoint | undefined {
  if (parentKey === null || forkSeq === null) return undefined;
  if (parentUid === null) throw new Error("the parent's row is missing");
  return { uid: parentUid as SessionUid, key: parentKey, forkSeq: forkSeq as Seq };
}
