/**
 * The steps from an empty file to the current schema. A step is never changed: files that have had it are out there.
 *
 * - `records` is a rowid table, its unique index the only way in: three times as fast to write as a table that is ordered by
 *   (session, seq), and a third smaller. `bytes` is last, so that the short columns are on the row's first page.
 * - `sessions` holds what listings filter on and what changes. What never changes is in `seeds`, so that a change does not
 *   rewrite a session's labels.
 * - A lease is in no table. The folder's lock proves that no process but this one runs turns, so leases end with it.
 */

const FIRST_SCHEMA = `
  CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX records_by_seq ON records (session, seq);

  CREATE TABLE asides (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (session, seq)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    create_time_ms INTEGER NOT NULL,
    parent_uid TEXT,
    parent_key INTEGER,
    fork_seq INTEGER,
    deleted INTEGER NOT NULL,
    open_turn INTEGER NOT NULL,
    open_approval INTEGER NOT NULL,
    update_time_ms INTEGER NOT NULL,
    version INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    head_hash TEXT NOT NULL,
    state TEXT NOT NULL,
    compute BLOB
  ) STRICT;
  CREATE UNIQUE INDEX sessions_by_name ON sessions (project, name) WHERE name <> '' AND deleted = 0;
  CREATE INDEX sessions_by_project ON sessions (project, create_time_ms DESC, uid) WHERE deleted = 0;
  CREATE INDEX sessions_by_time ON sessions (create_time_ms DESC, uid);
  CREATE INDEX sessions_by_parent ON sessions (parent_uid, create_time_ms DESC, uid) WHERE parent_uid IS NOT NULL;
  CREATE INDEX sessions_by_open_turn ON sessions (create_time_ms DESC, uid) WHERE open_turn = 1;
  CREATE INDEX sessions_by_open_approval ON sessions (create_time_ms DESC, uid) WHERE open_approval = 1;

  CREATE TABLE seeds (
    key INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
  ) STRICT;

  CREATE TABLE probes (
    bytes BLOB NOT NULL
  ) STRICT;
`;

/** Reclaiming: how far a session reaches that is there in part, and which sessions are deleted. */
const RECLAIM_SCHEMA = `
  ALTER TABLE sessions ADD COLUMN kept_seq INTEGER;
  CREATE INDEX sessions_by_deletion ON sessions (create_time_ms DESC, uid, update_time_ms) WHERE deleted = 1;
`;

/**
 * A forked child in fewer bytes: hashes as bytes, its parent by key, and indexes of times alone, which grow at their ends. Sessions
 * of one millisecond are put in order when they are listed.
 *
 * And less to write for an append in the middle of a turn: the append's last record says what the session's row would say
 * (`version`, `update_time_ms`; its seq, fence and hash are there anyway), and the row is left as it was. A session's row is behind
 * iff there is a record of the session's above `last_seq`, which can be only while `open_turn` is set.
 */
const COMPACT_SCHEMA = `
  CREATE TABLE new_records (
    position INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    version INTEGER,
    update_time_ms INTEGER,
    content_hash BLOB NOT NULL,
    bytes BLOB NOT NULL
  ) STRICT;
  INSERT INTO new_records SELECT position, session, seq, kind, fence, NULL, NULL, unhex(content_hash), bytes FROM records ORDER BY position;
  DROP TABLE records;
  ALTER TABLE new_records RENAME TO records;
  CREATE UNIQUE INDEX records_by_seq ON records (session, seq);

  CREATE TABLE new_sessions (
    key INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    create_time_ms INTEGER NOT NULL,
    parent_key INTEGER,
    fork_seq INTEGER,
    deleted INTEGER NOT NULL,
    open_turn INTEGER NOT NULL,
    open_approval INTEGER NOT NULL,
    kept_seq INTEGER,
    update_time_ms INTEGER NOT NULL,
    version INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    head_hash BLOB NOT NULL,
    state TEXT NOT NULL,
    compute BLOB
  ) STRICT;
  INSERT INTO new_sessions SELECT key, uid, project, name, create_time_ms, parent_key, fork_seq, deleted, open_turn, open_approval, kept_seq,
    update_time_ms, version, fence, last_seq, unhex(head_hash), state, compute FROM sessions ORDER BY key;
  DROP TABLE sessions;
  ALTER TABLE new_sessions RENAME TO sessions;
  CREATE UNIQUE INDEX sessions_by_name ON sessions (project, name) WHERE name <> '' AND deleted = 0;
  CREATE INDEX sessions_by_project ON sessions (project, create_time_ms) WHERE deleted = 0;
  CREATE INDEX sessions_by_time ON sessions (create_time_ms);
  CREATE INDEX sessions_by_parent ON sessions (parent_key, create_time_ms) WHERE parent_key IS NOT NULL;
  CREATE INDEX sessions_by_open_turn ON sessions (create_time_ms) WHERE open_turn = 1;
  CREATE INDEX sessions_by_open_approval ON sessions (create_time_ms) WHERE open_approval = 1;
  CREATE INDEX sessions_by_deletion ON sessions (create_time_ms, update_time_ms) WHERE deleted = 1;
`;

/** Receipts of tool calls, by the session's key and the idempotency key. */
const RECEIPTS_SCHEMA = `
  CREATE TABLE receipts (
    session INTEGER NOT NULL,
    key TEXT NOT NULL,
    call_id TEXT NOT NULL,
    call_seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    result_seq INTEGER,
    settled_by TEXT,
    PRIMARY KEY (session, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX receipts_unsettled ON receipts (session, call_seq) WHERE state IN ('started', 'unknown');
`;

/**
 * Records without their own hash in their bytes (`record-bytes.ts`). Those that are there stay as they are; the version says that others
 * may come, which an earlier Holdfast cannot read.
 */
const SHORT_RECORDS = `
  SELECT 1;
`;

/** Step n makes version n of version n − 1; version 0 is an empty file. */
export const MIGRATIONS: readonly string[] = [FIRST_SCHEMA, RECLAIM_SCHEMA, COMPACT_SCHEMA, RECEIPTS_SCHEMA, SHORT_RECORDS];
