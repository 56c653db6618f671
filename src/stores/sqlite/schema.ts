/**
 * The journal file's schema, and how an older file becomes a current one.
 *
 * - `records` is a rowid table, its unique index the only way in: three times as fast to write as a table that is ordered by
 *   (session, seq), and a third smaller. `bytes` is last, so that the short columns are on the row's first page.
 * - `sessions` holds what listings filter on and what every append changes. What never changes is in `seeds`, so that an
 *   append does not rewrite a session's labels.
 * - A lease is in no table. The folder's lock proves that no process but this one runs turns, so leases end with it.
 */

import type { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../base/index.ts";

/** Marks a file as a journal: "HFJL". */
const APPLICATION_ID = 0x48464a4c;

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

/** The steps from an empty file to the current schema: step n makes version n of version n − 1. A step is never changed. */
export const MIGRATIONS: readonly string[] = [FIRST_SCHEMA, RECLAIM_SCHEMA];

/**
 * The version of the file's schema; 0 for a new file. Changes nothing. Throws FAILED_PRECONDITION for a file of a newer version,
 * and for a database that is no journal.
 */
export function schemaVersionOf(db: DatabaseSync, newest: number = MIGRATIONS.length): number {
  const version = numberOf(db, "PRAGMA user_version");
  requireJournal(db, version);
  if (version <= newest) return version;
  throw new HoldfastError(
    "failed_precondition",
    `journal: the file has schema version ${version}, written by a newer Holdfast; this one knows versions up to ${newest}`,
  );
}

/** Brings the file to the version of the last step, each step in a transaction of its own. Throws as `schemaVersionOf` does. */
export function migrate(db: DatabaseSync, steps: readonly string[] = MIGRATIONS): void {
  for (let version = schemaVersionOf(db, steps.length) + 1; version <= steps.length; version++) {
    db.exec("BEGIN IMMEDIATE");
    try {
      db.exec(steps[version - 1]!);
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${version}; COMMIT`);
    } catch (error) {
      rollBack(db);
      throw error;
    }
  }
}

function requireJournal(db: DatabaseSync, version: number): void {
  const applicationId = numberOf(db, "PRAGMA application_id");
  const isNew = version === 0 && applicationId === 0 && numberOf(db, "SELECT count(*) FROM sqlite_schema") === 0;
  if (applicationId === APPLICATION_ID || isNew) return;
  throw new HoldfastError("failed_precondition", "journal: the file in the data folder is some other database; name another folder", {
    details: { applicationId, version },
  });
}

/** Ends a transaction that failed, if SQLite has not ended it by itself. */
export function rollBack(db: DatabaseSync): void {
  // Node tells from 22.16 on; before that, only trying does.
  const told = "isTransaction" in db;
  if (told && !db.isTransaction) return;
  try {
    db.exec("ROLLBACK");
  } catch (error) {
    if (!told) return;
    const message = "journal: a change that failed could not be undone; changes are refused until the server is started again";
    throw new HoldfastError("unavailable", message, { details: { lasts: true }, cause: error });
  }
}

/** The number that a pragma or a query of one column answers; −1 where it answers none. */
export function numberOf(db: DatabaseSync, sql: string): number {
  const row = db.prepare(sql).get();
  const value = row === undefined ? undefined : Object.values(row)[0];
  return typeof value === "number" ? value : -1;
}
