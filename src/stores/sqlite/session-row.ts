/** A session's row in the file, and the state it stands for. */

import { HoldfastError, type Fence, type Seq, type SessionUid } from "../../base/index.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { SessionState } from "../../journal/index.ts";
import { decodeCompute, decodeSeed, decodeState } from "./row-codec.ts";

/** The columns of a session and its seed. */
export const SESSION_COLUMNS = `s.key, s.uid, s.project, s.name, s.create_time_ms AS createTimeMs, s.parent_uid AS parentUid,
  s.parent_key AS parentKey, s.fork_seq AS forkSeq, s.deleted, s.update_time_ms AS updateTimeMs, s.version, s.fence,
  s.last_seq AS lastSeq, s.head_hash AS headHash, s.state, s.compute, s.kept_seq AS keptSeq, seeds.bytes AS seed`;

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
  readonly updateTimeMs: number;
  readonly version: number;
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
  const { key, parentUid, parentKey, forkSeq, updateTimeMs, version, fence, lastSeq, headHash, deleted, keptSeq } = row;
  const deletionState = deleted === 0 ? DeletionState.DELETION_ACTIVE : DeletionState.DELETION_PENDING;
  const { uid, project, name, createTimeMs } = row;
  return {
    key,
    seed: decodeSeed({ uid, project, name, createTimeMs }, row.seed),
    parent:
      parentUid === null || parentKey === null || forkSeq === null
        ? undefined
        : { uid: parentUid as SessionUid, key: parentKey, forkSeq: forkSeq as Seq },
    updateTimeMs,
    version,
    fence: fence as Fence,
    lease: undefined,
    compute: decodeCompute(row.compute),
    projection: decodeState(row.state, { lastSeq: lastSeq as Seq, headHash, deletionState }),
    keptSeq: keptSeq === null ? undefined : (keptSeq as Seq),
  };
}
