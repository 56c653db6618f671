/**
 * Opening such a file.
 *
 * Invariants:
 * - What a statement has changed is on the disk when it returns (WAL, synchronous=FULL, asked for at every open and read back).
 * - A file of somebody else's is not touched, not even to turn WAL on. A migration is never changed, and is made whole or not at all.
 * - Whoever opens the folder's journal has the folder; nobody else writes these files meanwhile.
 */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HoldfastError } from "../../base/index.ts";
import { told } from "./faults.ts";

/** One kind of file. */
export interface OwnFile {
  /** What it is, which messages begin with. */
  readonly name: string;
  /** Its name in the data folder. */
  readonly file: string;
  /** Four bytes that mark such a file. */
  readonly applicationId: number;
  /** Step n makes version n of version n − 1; version 0 is an empty file. */
  readonly migrations: readonly string[];
  /** A statement that would write and changes nothing: a file that may not be written opens without a word. */
  readonly trial: string;
}

const SYNCHRONOUS_FULL = 2;
/** How long a statement waits for a backup tool that locks the file for a moment. */
const BUSY_MS = 1000;

/**
 * Opens the file in a data folder, which must be there. Throws FAILED_PRECONDITION where it cannot be used (no folder, read-only, another
 * database, a newer schema), DATA_LOSS where it is damaged.
 */
export function openOwnFile(folder: string, own: OwnFile): DatabaseSync {
  return told(own.name, () => {
    const db = new DatabaseSync(join(folder, own.file));
    try {
      db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
      requireOwn(db, own);
      db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON");
      requireDurable(db, own);
      migrate(db, own);
      db.exec(own.trial);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

/** Throws FAILED_PRECONDITION for another database, and for one of a newer version. Changes nothing. */
function requireOwn(db: DatabaseSync, { name, applicationId, migrations }: OwnFile): number {
  const version = numberOf(db, "PRAGMA user_version");
  const marked = numberOf(db, "PRAGMA application_id");
  const isNew = version === 0 && marked === 0 && numberOf(db, "SELECT count(*) FROM sqlite_schema") === 0;
  if (marked !== applicationId && !isNew) {
    throw new HoldfastError("failed_precondition", `${name}: the file in the data folder is some other database; move it away`);
  }
  const newest = migrations.length;
  if (version <= newest) return version;
  const message = `${name}: the file has schema version ${version}, written by a newer Holdfast; this one knows versions up to ${newest}`;
  throw new HoldfastError("failed_precondition", message);
}

function requireDurable(db: DatabaseSync, { name }: OwnFile): void {
  const synchronous = numberOf(db, "PRAGMA synchronous");
  const mode = db.prepare("PRAGMA journal_mode").get()?.journal_mode;
  if (synchronous >= SYNCHRONOUS_FULL && mode === "wal") return;
  throw new HoldfastError("failed_precondition", `${name}: this build of SQLite does not keep what it commits (WAL, synchronous=FULL)`, {
    details: { synchronous, mode: String(mode) },
  });
}

/** Brings the file to the version of the last step. */
function migrate(db: DatabaseSync, own: OwnFile): void {
  const { applicationId, migrations } = own;
  const current = requireOwn(db, own);
  for (const [version, step] of migrations.entries()) {
    if (version < current) continue;
    // A step that fails leaves its transaction open; whoever opened the file closes it then, which undoes it.
    db.exec("BEGIN IMMEDIATE");
    db.exec(step);
    db.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${version + 1}; COMMIT`);
  }
}

/** The number that a pragma or a query of one column answers; −1 where it answers none. */
function numberOf(db: DatabaseSync, sql: string): number {
  const row = db.prepare(sql).get();
  const value = row === undefined ? undefined : Object.values(row)[0];
  return typeof value === "number" ? value : -1;
}
